"""What the workflow runs: attention into shards, tables of parses, training, speeds."""
