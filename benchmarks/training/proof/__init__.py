"""``python -m benchmarks.training.proof``: an interrupted training is held to the uninterrupted one, bit by bit."""
