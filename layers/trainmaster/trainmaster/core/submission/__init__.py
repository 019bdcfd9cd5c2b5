"""Accepting a request: the caller, the team, and the new job that the policy makes of it."""
