"""L14: a program of the SageMaker SDK v2, as it is, in the environment that the twin prints."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.twin_process import TwinProcess, running_twin
from tests.loopback import ran_alone

pytestmark = pytest.mark.thorough

POLICY = {"version": 1, "pools": [{"name": "cpu", "capacity": {"ml.m5.xlarge": 1}}]}
RUN = (sys.executable, "-c", "from trainmaster_client.cli import main; main()", "run", "--")
NOTEBOOK = """
import sagemaker
from sagemaker.estimator import Estimator

session = sagemaker.Session()
role = sagemaker.get_execution_role()
print("its environment:", role, session.default_bucket(), session.account_id())
estimator = Estimator(
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312",
    role=role,
    instance_count=1,
    instance_type="ml.m5.xlarge",
    container_entry_point=["echo", "trained"],
)
estimator.fit(job_name="notebook", logs="None")
"""
OURS = """
from sagemaker.estimator import Estimator
from trainmaster_client.session import QueueTrainingJobSession

Estimator(
    image_uri="763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312",
    role="trainmaster-local-training",
    instance_count=1,
    instance_type="ml.m5.xlarge",
    container_entry_point=["echo", "trained"],
    sagemaker_session=QueueTrainingJobSession(poll_seconds=0.2),
).fit(job_name="ours")
"""


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwinProcess]:
    with running_twin(tmp_path_factory.mktemp("twin"), policy=POLICY) as running:
        yield running


def program(folder: Path, text: str) -> str:
    file = folder / "program.py"
    file.write_text(text, encoding="utf-8")
    return str(file)


def creators(twin: TwinProcess, name: str) -> list[str]:
    """Who started the training job."""
    return [
        one["principal"].rpartition("/")[2]
        for one in twin.records()
        if one.get("operation") == "CreateTrainingJob" and one["params"]["TrainingJobName"] == name
    ]


def test_L14_a_plain_session_of_sdk_v2_queues_and_asks_nobody_but_the_twin(
    twin: TwinProcess, tmp_path: Path
) -> None:
    command = (*RUN, sys.executable, program(tmp_path, NOTEBOOK))
    said, strangers = ran_alone(twin, tmp_path, command)
    account, bucket = twin.ready["account_id"], twin.ready["bucket"]
    assert f"its environment: arn:aws:iam::{account}:role/local-admin {bucket} {account}\n" in said
    assert (strangers, creators(twin, "notebook")) == ([], ["schedule"])


def test_L14_the_queues_session_without_an_argument_of_its_own_warns_of_nothing(
    twin: TwinProcess, tmp_path: Path
) -> None:
    said, strangers = ran_alone(twin, tmp_path, (sys.executable, program(tmp_path, OURS)))
    assert (strangers, creators(twin, "ours")) == ([], ["schedule"])
    assert "\ntrained\n" in said
    assert not [word for word in ("Traceback", "Warning", "deprecat", "WARNING", "ERROR") if word in said]
