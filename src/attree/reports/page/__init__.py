"""The page that a run leaves behind: its tables, charts and trees, explained to a stranger."""
