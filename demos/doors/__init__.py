"""One job by each of six doors, all preempted once, as each client saw it: `make demo-doors`."""
