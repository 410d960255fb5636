"""Bulk parsing: raw lines in, one row of trees for every line out, through every failure.

An input is cut once into shards (:mod:`attree.bulk.manifest`); each shard goes through encoder,
association, split scores and tree in memory (:mod:`attree.bulk.pipeline`) and is written whole
or not at all (:mod:`attree.bulk.output`). One process does it, or Dask workers
(:mod:`attree.bulk.dask_workers`); the driver (:mod:`attree.bulk.driver`) hands shards out.
Importing this package imports nothing heavy.
"""
