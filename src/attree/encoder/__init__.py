"""Pretrained encoders: checkpoints, word pieces → words, attention and hidden states at once."""
