"""A comparison as one HTML file: everything inside, no script, no address of anything else."""
