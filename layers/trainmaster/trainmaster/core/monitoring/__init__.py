"""Monitoring of running jobs by alarms and checkpoints; and every metric."""
