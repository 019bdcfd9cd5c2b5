"""The steps of a job's life, and what becomes of it when its training job ends."""
