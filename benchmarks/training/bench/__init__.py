"""`python -m benchmarks.training.bench`: how fast a model trains on this machine. A job does not need it."""
