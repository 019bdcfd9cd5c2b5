import boto3
from trainmaster_client.api import ApiClient, find_api_url


def handler(event, context):
    """{"submit": a CreateTrainingJob request} or {"look": the name of a job}: how the job is."""
    session = boto3.Session()
    api = ApiClient(find_api_url(None, session), session)
    job = api.add_job(event["submit"])["job"] if "submit" in event else api.job(event["look"], estimate=False)
    reason = job.get("reason") or {}
    return {"name": job["name"], "state": job["state"], "why": reason.get("message") or job["state"]}
