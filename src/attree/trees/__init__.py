"""Trees: many as flat arrays, one to look at, what is known of them."""
