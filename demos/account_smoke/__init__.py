"""``make account-smoke``: the stack in a real account, four jobs on it, and all of it deleted again."""
