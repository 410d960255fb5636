"""Trees: many as flat arrays, one for users, constraints on them, and their status."""

#: Status of a sentence: parsed, branched right instead, or left without a tree.
OK, FALLBACK, SKIPPED = "ok", "right_branching", "skipped"

#: Why a parser did not parse a sentence: too long for the encoder, or its numbers are not finite.
TOO_LONG, FAILED = "too_long", "failed"
