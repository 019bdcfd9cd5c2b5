"""One program a door: it submits a job, looks at it until its end, and records what it saw."""
