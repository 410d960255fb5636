"""The article's experiments: rows, run in few jobs, gathered into tables.

A *row* is one parser, from one draw of trees, on one test set. Rows that share a training or an
encoder's states run in one job; each leaves a record of its own, so that none is run twice.
"""
