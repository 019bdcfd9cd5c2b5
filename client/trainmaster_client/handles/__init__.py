"""Jobs of the queue in hand: shown in notebooks, waited for, many at once."""

from trainmaster_client.handles.array_handles import JobArray
from trainmaster_client.handles.connected_handles import array, job, jobs, submit, submit_array
from trainmaster_client.handles.job_handles import Job
from trainmaster_client.handles.job_lists import Jobs

__all__ = ["Job", "JobArray", "Jobs", "array", "job", "jobs", "submit", "submit_array"]
