"""``attree evaluate``: from trees in files to F1."""
