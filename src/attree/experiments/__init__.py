"""Run the article's experiments in jobs, and gather their rows into tables.

A *row* is one parser, from one draw of trees, on one test set. Rows that share a training or an
encoder's states run in one job; each row leaves a record, so that it never runs twice.
"""
