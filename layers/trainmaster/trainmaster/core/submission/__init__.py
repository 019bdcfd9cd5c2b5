"""Submissions: who submits, for which team, and the new job that the policy makes of it."""
