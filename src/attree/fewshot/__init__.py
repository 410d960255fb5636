"""Few-shot parsers: projections and head weights trained on a few trees, by several objectives."""
