"""What ``trainmaster preflight`` asks an account before a deployment, and what it makes of that."""
