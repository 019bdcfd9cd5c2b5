"""The planner rolled forward, to estimate when a job will start."""
