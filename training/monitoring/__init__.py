"""Observes a training: metric lines, goodput, evaluations, traces, values that are not finite."""
