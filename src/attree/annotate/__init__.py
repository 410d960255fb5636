"""Annotate raw text: people correct proposed trees on a page, and get a treebank."""
