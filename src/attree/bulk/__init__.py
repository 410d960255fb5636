"""Parse large corpora: every input line gives a row or more, and failures can be resumed.

An input is cut once into shards (:mod:`attree.bulk.manifest`). Each shard is parsed in memory
(:mod:`attree.bulk.pipeline`) and written atomically (:mod:`attree.bulk.output`). One process does
this, or Dask workers (:mod:`attree.bulk.dask_workers`); the driver (:mod:`attree.bulk.driver`)
hands out the shards.
Importing this package imports nothing heavy.
"""
