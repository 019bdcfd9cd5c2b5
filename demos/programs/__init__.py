"""Programs that the demos run elsewhere: in training jobs, and by the Pythons of other clients."""
