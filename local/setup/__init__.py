"""The part of `make setup` that runs before anything is installed: the standard library alone."""
