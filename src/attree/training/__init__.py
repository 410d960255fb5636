"""What a few trees train."""

#: How many batches a parser is trained on, where nothing else is said.
STEPS = 200
