"""What a few trees train."""

#: How many batches a parser is trained on by default; fewer if few trees start from a parser.
STEPS, FEW_STEPS = 200, 50
