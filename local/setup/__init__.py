"""What `make setup` runs before anything is installed: the standard library alone."""
