"""Numbers that studies take from trees: node counts of words, shapes of sentences, phrase types."""
