"""What only comparisons need: other articles' parsers."""
