"""A stack of an earlier commit, with its jobs under way, becomes today's and goes back again."""
