"""Measures how the training program scales with the number of ranks; not part of a job."""
