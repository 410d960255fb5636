"""Masked-LM training: tuning an encoder on raw text, and making a small one of one's own."""
