"""Arrays: many tasks from one request, kept as one row until the tasks start."""
