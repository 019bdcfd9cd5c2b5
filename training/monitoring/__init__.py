"""What is seen of a training: metric lines, goodput, evaluations, traces, values that are not finite."""
