"""Divides a model among ranks, and tells whether each has room for its part."""

from training.parallel.sharding import allocate, begin_part, shard

__all__ = ["allocate", "begin_part", "shard"]
