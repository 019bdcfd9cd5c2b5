"""The same training by each way that users start one, each preempted once: `make demo-client`."""
