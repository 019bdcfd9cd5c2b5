"""Measures the tree by the project's own rules: where things lie, how large they are, how they are called."""
