"""trainmaster: queues, starts, preempts, resumes and governs SageMaker training jobs."""
