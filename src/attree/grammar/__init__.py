"""A grammar learnt from raw words: the compound PCFG of Kim, Dyer and Rush (2019)."""
