"""Pictures of tables: F1 of every head, lines over columns, heat maps of matrices."""
