"""What a few trees train."""
