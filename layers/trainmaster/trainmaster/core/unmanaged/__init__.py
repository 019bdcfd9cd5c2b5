"""Decisions about training jobs that bypassed the queue."""
