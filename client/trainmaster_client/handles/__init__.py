"""Jobs of the queue in hand: shown in notebooks, waited for, many at once."""

from trainmaster_client.handles.connected_handles import job, jobs, submit
from trainmaster_client.handles.job_handles import Job
from trainmaster_client.handles.job_lists import Jobs

__all__ = ["Job", "Jobs", "job", "jobs", "submit"]
