"""What launch.py has beside it: it notices ranks that hang. Python's standard library alone."""
