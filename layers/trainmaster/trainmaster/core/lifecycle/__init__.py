"""Steps of a job's life, and the decision what becomes of it when its training job ends."""
