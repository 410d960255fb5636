"""A page on which people correct proposed trees of raw text, until they have a treebank."""
