"""trainmaster: queues, starts, preempts, resumes and governs SageMaker training jobs."""

__version__ = "0.1.0"
"""The version of the stack and of the client."""
