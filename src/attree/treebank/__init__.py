"""Treebanks: readers (one a format), cleaning, languages, and the Parquet sentence table."""
