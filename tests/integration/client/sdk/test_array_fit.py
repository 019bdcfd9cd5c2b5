"""Arrays under the SageMaker SDK v2: ``fit()`` of a tagged estimator, and ``submit_array(estimator)``."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import trainmaster_client
from sagemaker.exceptions import UnexpectedStatusException
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session
from trainmaster_client.errors import InvalidOptionsError, PolicyViolationError
from trainmaster_client.session import QueueTrainingJobSession

from tests.integration.client.array_answers import array_document, no_job
from tests.integration.client.fake_api import FakeApi, Scripted, problem
from tests.integration.client.fake_aws import FakeAws
from tests.integration.client.sdk_world import ROLE, World, estimator, running_world

TAGS = [{"Key": "trainmaster:array", "Value": "0-3@2"}]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_world() as running:
        yield running


@pytest.fixture
def api(world: World) -> FakeApi:
    world.forget()
    return world.api


@pytest.fixture
def session(world: World) -> QueueTrainingJobSession:
    return world.session


def script(api: FakeApi, *views: dict[str, Any]) -> None:
    answer = {"array": array_document(), "warnings": []}
    for path in ("/add-job", "/add-array"):
        api.script("POST", path, Scripted(status=201, document=answer))
    api.script("GET", "/jobs/sweep", no_job())
    api.script("GET", "/arrays/sweep", *(Scripted(document=view) for view in views))


RUNNING = array_document(state="running", tasks={"running": 2, "waiting": 2}, at_most=2)
DONE = array_document(state="completed", tasks={"completed": 4}, at_most=2)
FAILED = array_document(state="failed", tasks={"completed": 3, "failed": 1}, failed="2")
CANCELLED = array_document(state="stopped", tasks={"stopped": 4}, stopped="0-3")


def test_fit_waits_with_a_line_a_change_of_counts_and_no_logs(
    session: QueueTrainingJobSession, api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    script(api, array_document(), RUNNING, RUNNING, DONE)
    estimator(session, tags=TAGS).fit(job_name="sweep")
    assert capsys.readouterr().out.splitlines()[-4:] == [
        "Queued the array sweep: pending, 0 of 4 completed, 4 waiting",
        "sweep: pending, 0 of 4 completed, 4 waiting",
        "sweep: running, 0 of 4 completed, 2 running of at most 2, 2 waiting",
        "sweep: completed, 4 of 4 completed",
    ]


@pytest.mark.parametrize(
    ("end", "message"),
    [(FAILED, "sweep: Failed. Reason: 1 of 4 tasks failed: 2"), (CANCELLED, "sweep: Stopped")],
)
def test_fit_raises_where_describe_says_failed_or_stopped(
    end: dict[str, Any], message: str, session: QueueTrainingJobSession, api: FakeApi
) -> None:
    script(api, RUNNING, end)
    with pytest.raises(UnexpectedStatusException, match=message):
        estimator(session, tags=TAGS).fit(job_name="sweep", logs=False)


def test_submit_array_sends_the_estimators_own_request_with_values_as_it_writes_them(
    session: QueueTrainingJobSession, api: FakeApi
) -> None:
    script(api, array_document())
    rows = [{"steps": 5}, {"steps": 6}]
    array = trainmaster_client.submit_array(
        estimator(session), values=rows, at_most=1, after="prepare", job_name="sweep", api_url=api.url
    )
    assert array.name == "sweep"
    assert api.calls() == ["POST /add-array"]
    sent = json.loads(api.received[0].body)
    assert (sent["tasks"], sent["at_most"], sent["values"]) == ("0-1", 1, {"steps": ["5", "6"]})
    assert sent["request"]["TrainingJobName"] == "sweep"
    assert sent["request"]["RoleArn"] == ROLE
    assert {"Key": "trainmaster:after", "Value": "prepare"} in sent["request"]["Tags"]
    assert api.received[0].headers["idempotency-key"]


def test_a_frameworks_values_are_json_as_its_own_hyperparameters_are(
    session: QueueTrainingJobSession, api: FakeApi
) -> None:
    script(api, array_document())
    trainer = PyTorch(
        entry_point="train.py",
        source_dir="s3://bucket/code/sourcedir.tar.gz",
        image_uri="123456789012.dkr.ecr.eu-west-1.amazonaws.com/train:1",
        role=ROLE,
        instance_count=1,
        instance_type="ml.p5.48xlarge",
        output_path="s3://bucket/out",
        sagemaker_session=session,
        hyperparameters={"optimizer": "sgd", "lr": 0.1},
    )
    columns: dict[str, list[Any]] = {"optimizer": ["adam", "sgd"], "lr": [0.1, 1]}
    trainmaster_client.submit_array(trainer, values=columns, job_name="sweep", api_url=api.url)
    sent = json.loads(api.received[0].body)
    assert sent["request"]["HyperParameters"]["optimizer"] == '"sgd"'
    assert sent["values"] == {"optimizer": ['"adam"', '"sgd"'], "lr": ["0.1", "1"]}


def test_a_plain_session_is_hooked_and_its_estimator_can_be_asked(world: World, api: FakeApi) -> None:
    script(api, DONE)
    plain = estimator(Session(world.session.boto_session))
    trainmaster_client.submit_array(plain, values={"steps": [1]}, job_name="sweep", api_url=api.url)
    assert plain.latest_training_job.describe()["TrainingJobStatus"] == "Completed"


def test_mistakes_and_refusals_keep_their_own_types_and_the_next_fit_is_a_plain_one(
    world: World, session: QueueTrainingJobSession, api: FakeApi
) -> None:
    plain = estimator(Session(world.session.boto_session))
    with pytest.raises(InvalidOptionsError, match=r"values\[1\].step: of task 1 .* did you mean steps"):
        trainmaster_client.submit_array(
            plain, values=[{"steps": 1}, {"step": 2}], job_name="sweep", api_url=api.url
        )
    assert api.calls() == []
    api.script("POST", "/add-array", problem(422, "Against the policy", "10001 tasks, 10000 allowed"))
    with pytest.raises(PolicyViolationError, match="10000 allowed"):
        trainmaster_client.submit_array(plain, tasks="0-10000", job_name="sweep", api_url=api.url)
    script(api, DONE)
    estimator(session, tags=TAGS).fit(job_name="sweep", wait=False)
    assert api.calls()[-1] == "POST /add-job"


def test_the_world_asks_nothing_of_aws(world: World) -> None:
    assert isinstance(world.aws, FakeAws)
    assert world.aws.operations() == []
