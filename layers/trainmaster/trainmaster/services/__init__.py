"""Read, decide, act, commit: one verb of the system each."""
