"""``python -m benchmarks.training.proof``: holds an interrupted training to an uninterrupted one."""
