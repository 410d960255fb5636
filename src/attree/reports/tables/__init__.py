"""Tables of scores: over languages, per language, of treebank sizes, comparisons."""
