"""One program a door, run by the Python that has the SDK: a user's script, and beside it what it saw."""
