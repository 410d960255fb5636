"""Parser, the one way from sentences to trees, and which parser is meant."""
