"""What else of the SDK v3 starts training jobs, and what of it the queue gets."""

from pathlib import Path

import boto3
import pytest
from sagemaker.core.remote_function import RemoteExecutor
from trainmaster_client.api import ApiClient, Document
from trainmaster_client.hook import install, uninstall
from trainmaster_client.job_options import job_tags

from local.twin_process import TwinProcess
from tests.v3.training import IMAGE, eventually, session_of, trainer


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


def test_installed_for_the_process_a_trainer_whose_session_comes_later_queues(
    configured: TwinProcess, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(uninstall)
    install()
    trainer(configured, tmp_path, "later", session=session_of(configured, boto3.Session())).train(wait=False)
    api = ApiClient(configured.ready["api_url"], boto3.Session())
    assert eventually(lambda: jobs(api, "later"), bool)
    created = [one for one in configured.records() if one.get("operation") == "CreateTrainingJob"]
    assert {one["principal"].rpartition("/")[2] for one in created} <= {"schedule"}


def jobs(api: ApiClient, prefix: str = "remote") -> list[Document]:
    return [
        job
        for job in [*api.jobs()["jobs"], *api.jobs(state="failed")["jobs"]]
        if str(job["name"]).startswith(prefix)
    ]
