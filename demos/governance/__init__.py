"""``make demo-governance``: what becomes of jobs that break rules, stall, fail, or bypassed the queue."""
