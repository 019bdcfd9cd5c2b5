"""The scripts of the cases of demo-scripts that docs/examples does not have; each runs in its job alone."""
