"""What is watched of a running job: alarms, checkpoints; and every metric."""
