"""The use cases: each module reads, decides with the core, acts and commits."""
