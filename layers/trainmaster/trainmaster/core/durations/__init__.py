"""How long jobs train, learned from those that ended: a guess, never a promise."""
