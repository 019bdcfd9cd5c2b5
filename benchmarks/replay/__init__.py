"""Replays a GPU trace in simulated time: the product's planner beside a plain priority queue."""
