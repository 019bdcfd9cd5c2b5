"""What launch.py has beside it: cores of the ranks, ranks that hang. Python's standard library alone."""
