"""Trees: many as flat arrays, one for users, and constraints on them."""
