"""The training program that a SageMaker job runs: stops when asked, resumes where it was."""
