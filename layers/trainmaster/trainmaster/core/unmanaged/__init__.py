"""Training jobs that bypassed the queue."""
