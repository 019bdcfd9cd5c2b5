"""What SageMaker answers: DescribeTrainingJob as an observation, refusals of CreateTrainingJob as errors."""

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from botocore.exceptions import ClientError
from trainmaster.adapters.sagemaker import SageMakerTraining
from trainmaster.core.errors import AccountLimitError, InstanceLimitError, OtherLimitError, TrainmasterError
from trainmaster.core.jobs.observations import Observation, TrainingInterval

from tests.builders import NOON, minutes

IN_TOKYO = timezone(timedelta(hours=9))
"""botocore answers in the zone of the machine."""


@dataclass(frozen=True, slots=True)
class Client:
    answer: dict[str, Any]

    def describe_training_job(self, TrainingJobName: str) -> dict[str, Any]:  # noqa: N803  boto3's
        return {
            "TrainingJobName": TrainingJobName,
            "TrainingJobArn": "arn:x",
            "TrainingJobStatus": "InProgress",
            "SecondaryStatus": "Training",
            **self.answer,
        }


def described(**answer: Any) -> Observation:
    found = SageMakerTraining(Client(answer)).describe("job1")
    assert found is not None
    return found


def status(name: str, start: float, end: float | None = None) -> dict[str, Any]:
    """Minutes after noon."""
    ended = {} if end is None else {"EndTime": at(end)}
    return {"Status": name, "StartTime": at(start), **ended}


def at(minute: float) -> datetime:
    return (NOON + minutes(minute)).astimezone(IN_TOKYO)


def interval(since: float, until: float | None) -> TrainingInterval:
    return TrainingInterval(
        since=NOON + minutes(since), until=None if until is None else NOON + minutes(until)
    )


INTERRUPTED_TWICE = [
    status("Starting", 0, 5),
    status("Downloading", 5, 10),
    status("Training", 10, 40),
    status("Interrupted", 40, 41),
    status("Restarting", 41, 50),
    status("Training", 50, 60),
    status("Interrupted", 60, 61),
    status("Restarting", 61, 70),
    status("Training", 70),
]


def test_interruptions_are_counted_and_each_time_in_training_is_kept() -> None:
    seen = described(SecondaryStatusTransitions=INTERRUPTED_TWICE)
    assert (seen.training_since, seen.interruptions) == (NOON + minutes(10), 2)
    assert seen.training_intervals == (interval(10, 40), interval(50, 60), interval(70, None))
    assert seen.trained_before == minutes(40)


def test_time_in_training_goes_on_until_now_or_until_the_end() -> None:
    seen = described(SecondaryStatusTransitions=INTERRUPTED_TWICE)
    assert [seen.trained_by(NOON + minutes(minute)) for minute in (0, 20, 45, 65, 90)] == [
        minutes(0),
        minutes(10),
        minutes(30),
        minutes(40),
        minutes(60),
    ]
    over = described(
        TrainingJobStatus="Stopped",
        TrainingEndTime=at(80),
        SecondaryStatusTransitions=INTERRUPTED_TWICE,
    )
    assert over.trained_by(NOON + minutes(90)) == minutes(50)


def test_a_status_that_does_not_say_when_it_ended_lasted_until_the_next() -> None:
    seen = described(SecondaryStatusTransitions=[status("Training", 10), status("Uploading", 30)])
    assert seen.training_intervals == (interval(10, 30),)


def test_before_training_there_is_none() -> None:
    for answer in ({}, {"SecondaryStatusTransitions": [status("Starting", 0)]}):
        seen = described(**answer)
        assert (seen.training_since, seen.training_intervals, seen.trained_before) == (None, (), None)
        assert seen.trained_by(NOON + minutes(9)) == timedelta()


def test_the_bill_and_the_time_the_instances_were_there_are_apart() -> None:
    seen = described(BillableTimeInSeconds=100, TrainingTimeInSeconds=500)
    assert (seen.billable, seen.up) == (timedelta(seconds=100), timedelta(seconds=500))
    assert (described().billable, described().up) == (None, None)


def test_what_the_program_said_last_is_kept_without_its_secrets() -> None:
    said = 'AlgorithmError: "ValueError: no login with password=hunter2hunter2 or AKIAIOSFODNN7EXAMPLE"'
    assert described(FailureReason=said).failure_reason == (
        'AlgorithmError: "ValueError: no login with password=*** or ***"'
    )


def test_a_secret_is_hidden_before_the_reason_is_cut() -> None:
    reason = described(FailureReason="x " * 505 + "AKIAIOSFODNN7EXAMPLE").failure_reason
    assert reason is not None
    assert reason.endswith("x ***")
    cut = described(FailureReason="x " * 507 + "AKIAIOSFODNN7EXAMPLE").failure_reason
    assert cut == "x " * 507 + "***"


@dataclass(frozen=True, slots=True)
class Refusing:
    message: str

    def create_training_job(self, **_: Any) -> dict[str, Any]:
        said = {"Code": "ResourceLimitExceeded", "Message": self.message}
        response: Any = {"Error": said, "ResponseMetadata": {"HTTPStatusCode": 400}}
        raise ClientError(response, "CreateTrainingJob")


@pytest.mark.parametrize(
    ("quota", "error"),
    [
        pytest.param("ml.g5.xlarge for training job usage", InstanceLimitError, id="instances"),
        pytest.param("ml.g5.xlarge for spot training job usage", InstanceLimitError, id="spot instances"),
        pytest.param("ml.g5.xlarge for training warm pool usage", AccountLimitError, id="warm pools"),
        pytest.param("Longest run time for a training job", AccountLimitError, id="run time"),
    ],
)
def test_a_quota_of_instances_is_told_from_the_others(quota: str, error: type[TrainmasterError]) -> None:
    assert type(refused_for(f"'{quota}' is 0 Instances, with current utilization of 0")) is error


def refused_for(limit: str) -> AccountLimitError:
    """The error of a start that AWS refused for a limit in these words."""
    with pytest.raises(AccountLimitError) as raised:
        SageMakerTraining(Refusing(f"The account-level service limit {limit}")).create(
            {"TrainingJobName": "job1"}, launcher=None
        )
    return raised.value


def figures(quota: str, *, unit: str = "Instances", most: int = 5, used: int = 2) -> str:
    """A limit in AWS's words, with its figures."""
    use = f"with current utilization of {used} {unit} and a request delta of 4 {unit}"
    return f"'{quota}' is {most} {unit}, {use}."


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        pytest.param(figures("ml.g5.xlarge for training job usage"), 3, id="of a type"),
        pytest.param(figures("Number of instances for a training job", used=0), 5, id="of a job"),
        pytest.param(
            figures("ml.g5.xlarge for training job usage", used=7), 0, id="more in use than allowed"
        ),
        pytest.param(
            figures("ml.g5.xlarge for training job usage", unit="Instance", most=1, used=0), 1, id="of one"
        ),
        pytest.param(
            figures("ml.g5.xlarge for training job usage").replace("5 Inst", "1,005 Inst"), 1003, id="a comma"
        ),
        pytest.param("'ml.g5.xlarge for training job usage' is 5 Instances", None, id="no use in its words"),
        pytest.param("has been reached", None, id="other words"),
    ],
)
def test_what_a_quota_of_instances_leaves_is_read_from_its_figures(limit: str, left: int | None) -> None:
    error = refused_for(limit)
    assert error.instances_left == left
    assert not isinstance(error, OtherLimitError)


@pytest.mark.parametrize(
    ("quota", "unit"),
    [
        ("Longest run time for a training job", "Seconds"),
        ("Size of EBS volume for an instance of a training job", "Gigabytes"),
        ("ml.g5.xlarge for processing job usage", "Instances"),
        ("ml.g5.xlarge for training warm pool usage", "Instances"),
    ],
)
def test_a_quota_that_counts_no_instances_of_training_jobs_says_nothing_about_widths(
    quota: str, unit: str
) -> None:
    error = refused_for(figures(quota, unit=unit))
    assert type(error) is OtherLimitError
    assert error.instances_left is None
