"""Pictures of tables: F1 of every head, lines over columns, heat maps of matrices."""

from __future__ import annotations

#: Where a line of a picture, or a cell of a table, comes from.
COMPUTED, BASELINE, ARTICLE = "computed", "baseline", "article"
