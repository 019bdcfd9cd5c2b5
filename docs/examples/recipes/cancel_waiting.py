"""Cancels your jobs that wait; those that run or were preempted are left: python cancel_waiting.py."""

import trainmaster_client

for job in trainmaster_client.jobs(mine=True, state="pending", limit=1000):
    print(job.name, job.cancel().state)
