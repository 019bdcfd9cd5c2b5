"""Divide a model among ranks, and tell whether each has room for its part."""

from training.parallel.sharding import allocate, begin_part, shard

__all__ = ["allocate", "begin_part", "shard"]
