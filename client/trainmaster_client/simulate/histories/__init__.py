"""Turns the lines of a record, a trace or SageMaker's answers into the jobs of a replay. Pure."""
