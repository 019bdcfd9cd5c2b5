"""Who submits, for which team, and what the policy makes of it: the new job."""
