"""Models and the steps of training them: first weights, losses, adapters, float8, optimizers, precision."""
