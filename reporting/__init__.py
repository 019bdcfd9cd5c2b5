"""How demos, benchmarks, test runners and the proof of the training program say what they found."""
