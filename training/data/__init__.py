"""What each step trains on: a function of (seed, step, rank), wherever the tokens lie."""
