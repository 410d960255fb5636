"""The attention stage: an encoder run over sentences, its heads kept word by word as shards."""
