"""What people read: tables of scores over languages, per language, and of treebank sizes."""
