"""Tools for assistants: they read the queue and change nothing."""
