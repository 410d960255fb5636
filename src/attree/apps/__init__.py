"""What stands on parsers: evaluation of own files, measures, spaCy."""
