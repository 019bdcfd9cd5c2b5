"""The questions ``trainmaster preflight`` asks an account before a deployment, and its verdicts."""
