"""Bulk parsing: raw lines in, one row of trees for every line out, through every failure.

An input is cut once into shards (:mod:`attree.corpus.manifest`); each shard goes through encoder,
association, split scores and tree in memory (:mod:`attree.corpus.pipeline`) and is written whole
or not at all (:mod:`attree.corpus.output`). One process does it, or Dask workers
(:mod:`attree.corpus.dask_workers`); the driver (:mod:`attree.corpus.driver`) hands shards out.
Importing this package imports nothing heavy.
"""
