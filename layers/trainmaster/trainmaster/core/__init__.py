"""Data and decisions: no I/O, clock, chance, environment or logger."""
