"""Raw text, of any kind of file, to sentences of words."""
