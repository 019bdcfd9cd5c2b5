from hashlib import sha256

import boto3
from trainmaster_client.api import ApiClient, find_api_url


def handler(event, context):
    """{"submit": a CreateTrainingJob request, "execution": its id} or {"look": a job's name}: how it is."""
    session = boto3.Session()
    api = ApiClient(find_api_url(None, session), session)
    job = submitted(api, event) if "submit" in event else api.job(event["look"], estimate=False)
    reason = job.get("reason") or {}
    return {"name": job["name"], "state": job["state"], "why": reason.get("message") or job["state"]}


def submitted(api, event):
    """A retry has the key of its execution, so it is answered with that one's job, even if it has ended."""
    return api.add_job(event["submit"], key=sha256(event["execution"].encode()).hexdigest())["job"]
