"""Parsers of other articles, for comparison only."""
