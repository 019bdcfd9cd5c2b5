"""``make demo-governance``: what becomes of jobs that break rules, stall, fail, or went round the queue."""
