"""Releases: what one consists of, how it is made of a commit, and what it must pass."""
