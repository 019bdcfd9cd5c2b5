"""Jobs and attempts: what they are and what they ask for."""
