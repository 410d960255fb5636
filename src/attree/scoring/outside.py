"""Outside split score (UPOA, FPOA): minus the mean association across the split."""

from __future__ import annotations

#: The whole score is the cross term.
terms = None
CROSS = True
