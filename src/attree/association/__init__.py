"""Association matrices of an encoder's heads and layers: sources, shards, choosing heads."""
