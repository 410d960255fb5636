"""The parse stage: a table of parses for the sentences of a treebank."""
