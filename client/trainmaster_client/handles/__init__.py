"""Jobs of the queue in hand: shown in notebooks, waited for, many at once."""

from trainmaster_client.handles.job_handles import Job, Jobs, job, jobs, submit

__all__ = ["Job", "Jobs", "job", "jobs", "submit"]
