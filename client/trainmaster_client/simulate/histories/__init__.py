"""From the lines of a record, a trace or SageMaker's answers to the jobs of a replay. Pure."""
