"""What else of the SDK v3 starts training jobs, and what of it the queue gets."""

import boto3
from sagemaker.core.remote_function import RemoteExecutor
from trainmaster_client.api import ApiClient, Document
from trainmaster_client.hook import install
from trainmaster_client.job_options import job_tags

from local.twin_process import TwinProcess
from tests.v3.training import IMAGE, eventually, session_of


def test_a_remote_function_is_a_job_of_the_queue(configured: TwinProcess) -> None:
    boto_session = boto3.Session()
    install(boto_session)
    api = ApiClient(configured.ready["api_url"], boto_session)
    with RemoteExecutor(
        sagemaker_session=session_of(configured, boto_session),
        image_uri=IMAGE,
        instance_type="ml.m5.xlarge",
        role=configured.ready["role_arn"],
        job_name_prefix="remote",
        s3_root_uri=f"s3://{configured.ready['bucket']}/remote",
        tags=job_tags(priority=7),
    ) as executor:
        executor.submit(lambda: 1)  # its image does not run at the twin
        found = eventually(lambda: jobs(api), bool)
    assert [(job.get("priority"), job.get("pool")) for job in found] == [(7, "cpu")]


def jobs(api: ApiClient) -> list[Document]:
    return [
        job
        for job in [*api.jobs()["jobs"], *api.jobs(state="failed")["jobs"]]
        if str(job["name"]).startswith("remote")
    ]
