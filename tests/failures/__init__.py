"""Real messages of failed training jobs, and how well the diagnosis tells their classes."""
