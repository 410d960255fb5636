"""Which attention heads a parser averages, how they are ranked, and the parses that they give."""
