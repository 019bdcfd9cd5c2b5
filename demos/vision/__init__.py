"""`make demo-vit`: a vision transformer is preempted on the twin, and resumes."""
