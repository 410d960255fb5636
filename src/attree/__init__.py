"""Constituency trees out of a pretrained language model's attention.

Association matrix → split scores → tree: an encoder gives a word × word association matrix
(:mod:`attree.encoder`, :mod:`attree.heads`), a scorer turns it into scores for splitting any
span at any point (:mod:`attree.scoring`), a decoder picks the tree (:mod:`attree.decoding`).

Conventions that hold everywhere: spans are half-open word intervals ``[start, end)``; attention is
indexed ``(layer, head, query, key)``; layers and heads are 0-based.
"""

__version__ = "0.1.0"
