"""The stages of the workflow: attention, parsing, training, timing."""
