"""Cancels your jobs that wait; those that run or were preempted are left: python cancel_waiting.py."""

import boto3
import trainmaster_client
from trainmaster_client.api import ApiClient, find_api_url

session = boto3.Session()
api = ApiClient(find_api_url(None, session), session)
for job in trainmaster_client.jobs(mine="true", state="pending", limit=1000):
    print(job.name, api.cancel(job.name)["state"])
