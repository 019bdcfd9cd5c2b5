"""What DescribeTrainingJob answers for a job of the queue, by the job's state and its attempts."""

from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster_client.hooks.job_description import Description, description
from trainmaster_client.jobs.job_views import JobView, job_view

ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-job/job1"
REQUEST = {
    "TrainingJobName": "job1",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out/"},
    "Tags": [{"Key": "a", "Value": "b"}],
}


def at(minute: int) -> datetime:
    return datetime(2026, 11, 21, 1, minute, tzinfo=UTC)


def job(state: str, *steps: tuple[str, int], **more: Any) -> JobView:
    """``steps``: (to, attempt), a minute apart."""
    history = [
        {"at": at(minute).isoformat(), "attempt": attempt, "to": to, "reason": None}
        for minute, (to, attempt) in enumerate(steps)
    ]
    whole = {"name": "job1", "state": state, "pool": "p5", "position": 1, "submitted_at": at(0).isoformat()}
    return job_view({**whole, "training_job_name": "job1", "history": history, **more})


def attempt(name: str, status: str, secondary: str, **more: Any) -> Description:
    transitions = [{"Status": secondary, "StartTime": at(1), "StatusMessage": f"{name} {secondary}"}]
    whole = {"TrainingJobName": name, "TrainingJobStatus": status, "SecondaryStatus": secondary}
    return {**whole, "SecondaryStatusTransitions": transitions, "TrainingJobArn": f"arn of {name}", **more}


def describe(seen: JobView, *attempts: Description) -> Description:
    return description(seen, REQUEST, dict(enumerate(attempts)), arn=ARN)


RAN = (("pending", 0), ("starting", 0), ("running", 0))
CAME_BACK = (*RAN, ("preempting", 0), ("preempted", 1))


@pytest.mark.parametrize(
    ("seen", "attempts", "expected"),
    [
        pytest.param(job("pending", ("pending", 0)), [], ("InProgress", "Pending"), id="waits"),
        pytest.param(job("held", ("held", 0)), [], ("InProgress", "Pending"), id="held"),
        pytest.param(
            job("starting", *RAN[:2]), [], ("InProgress", "Starting"), id="SageMaker does not show it yet"
        ),
        pytest.param(
            job("running", *RAN),
            [attempt("job1", "InProgress", "Downloading")],
            ("InProgress", "Downloading"),
            id="runs",
        ),
        pytest.param(
            job("preempting", *RAN, ("preempting", 0)),
            [attempt("job1", "Stopping", "Stopping")],
            ("InProgress", "Stopping"),
            id="makes room and comes back",
        ),
        pytest.param(
            job("preempted", *CAME_BACK),
            [attempt("job1", "Stopped", "Stopped")],
            ("InProgress", "Pending"),
            id="waits to come back",
        ),
        pytest.param(
            job("running", *RAN),
            [attempt("job1", "Failed", "Failed", FailureReason="x")],
            ("InProgress", "Failed"),
            id="its attempt failed and nobody decided yet",
        ),
        pytest.param(
            job("starting", *CAME_BACK, ("starting", 1), training_job_name="job1-r1"),
            [attempt("job1", "Stopped", "Stopped")],
            ("InProgress", "Starting"),
            id="starts again",
        ),
        pytest.param(
            job("preempting", *RAN, ("preempting", 0)),
            [attempt("job1", "Completed", "Completed")],
            ("Completed", "Completed"),
            id="completed before it could be stopped",
        ),
        pytest.param(
            job("stopping", *RAN, ("stopping", 0)),
            [attempt("job1", "Stopping", "Stopping")],
            ("Stopping", "Stopping"),
            id="is stopped",
        ),
        pytest.param(
            job("stopping", *RAN, ("stopping", 0)),
            [attempt("job1", "InProgress", "Training")],
            ("Stopping", "Stopping"),
            id="SageMaker was not told yet that it is to stop",
        ),
        pytest.param(
            job("stopped", *RAN, ("stopped", 0)),
            [attempt("job1", "Stopped", "MaxRuntimeExceeded")],
            ("Stopped", "MaxRuntimeExceeded"),
            id="ran out of time",
        ),
        pytest.param(
            job("stopped", *CAME_BACK, ("stopped", 1)),
            [attempt("job1", "Stopped", "Stopped")],
            ("Stopped", "Stopped"),
            id="cancelled while it waited to come back",
        ),
        pytest.param(
            job("failed", *RAN[:2], ("failed", 0)), [], ("Failed", "Failed"), id="SageMaker never took it"
        ),
    ],
)
def test_the_status_is_the_jobs_and_the_rest_its_live_attempts(
    seen: JobView, attempts: list[Description], expected: tuple[str, str]
) -> None:
    found = describe(seen, *attempts)
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == expected


def test_before_there_is_an_attempt_the_request_is_shown_with_sagemakers_defaults() -> None:
    found = describe(job("pending", ("pending", 0)))
    assert found["TrainingJobArn"] == ARN
    assert found["RoleArn"] == "arn:aws:iam::123456789012:role/training"
    assert found["OutputDataConfig"] == {"KmsKeyId": "", "S3OutputPath": "s3://bucket/out/"}
    assert found["StoppingCondition"] == {"MaxRuntimeInSeconds": 86400}
    assert found["ModelArtifacts"] == {"S3ModelArtifacts": "s3://bucket/out/job1/output/model.tar.gz"}
    assert found["EnableManagedSpotTraining"] is False
    assert found["CreationTime"] == at(0)
    assert "Tags" not in found


def test_an_uncompressed_model_is_a_folder() -> None:
    output = {"S3OutputPath": "s3://bucket", "CompressionType": "NONE"}
    seen = job("pending", ("pending", 0))
    found = description(seen, {**REQUEST, "OutputDataConfig": output}, {}, arn=ARN)
    assert found["ModelArtifacts"] == {"S3ModelArtifacts": "s3://bucket/job1/output/model"}


def test_transitions_run_over_waits_and_attempts_in_the_order_of_the_history() -> None:
    seen = job(
        "completed",
        *CAME_BACK,
        ("starting", 1),
        ("running", 1),
        ("completed", 1),
        training_job_name="job1-r1",
    )
    found = describe(
        seen, attempt("job1", "Stopped", "Stopped"), attempt("job1-r1", "Completed", "Completed")
    )
    told = [(one["Status"], one["StatusMessage"]) for one in found["SecondaryStatusTransitions"]]
    assert told == [
        ("Pending", "Waited in the queue"),
        ("Stopped", "job1 Stopped"),
        ("Pending", "Waited in the queue"),
        ("Completed", "job1-r1 Completed"),
    ]
    first = found["SecondaryStatusTransitions"][0]
    assert (first["StartTime"], first["EndTime"]) == (at(0), at(1))


def test_the_wait_that_lasts_has_no_end_and_says_why() -> None:
    waiting = {"code": "capacity", "message": "0 are free"}
    found = describe(job("preempted", *CAME_BACK, waiting=waiting), attempt("job1", "Stopped", "Stopped"))
    assert found["SecondaryStatusTransitions"][-1] == {
        "Status": "Pending",
        "StartTime": at(4),
        "StatusMessage": "Waiting to resume, position 1 in pool p5 - capacity: 0 are free",
    }


def test_a_start_that_was_given_back_is_told_once() -> None:
    steps = (("pending", 0), ("starting", 0), ("pending", 0), ("starting", 0), ("running", 0))
    found = describe(job("running", *steps), attempt("job1", "InProgress", "Training"))
    assert [one["Status"] for one in found["SecondaryStatusTransitions"]] == [
        "Pending",
        "Pending",
        "Training",
    ]


def test_attempts_older_than_the_history_come_first() -> None:
    seen = job("running", ("starting", 1), ("running", 1), training_job_name="job1-r1")
    found = describe(
        seen, attempt("job1", "Stopped", "Stopped"), attempt("job1-r1", "InProgress", "Training")
    )
    assert [one["Status"] for one in found["SecondaryStatusTransitions"]] == ["Stopped", "Training"]


def test_an_end_in_the_queue_is_the_last_transition() -> None:
    reason = {"code": "stopped-by-user", "message": "stopped by ann"}
    found = describe(job("stopped", ("pending", 0), ("stopped", 0), reason=reason))
    assert [one["Status"] for one in found["SecondaryStatusTransitions"]] == ["Pending", "Stopped"]
    assert "FailureReason" not in found


def test_times_span_the_attempts_and_durations_are_their_sums() -> None:
    first = attempt(
        "job1",
        "Stopped",
        "Stopped",
        TrainingStartTime=at(2),
        TrainingEndTime=at(5),
        TrainingTimeInSeconds=180,
        BillableTimeInSeconds=60,
    )
    second = attempt(
        "job1-r1",
        "Completed",
        "Completed",
        TrainingStartTime=at(7),
        TrainingEndTime=at(9),
        TrainingTimeInSeconds=120,
        BillableTimeInSeconds=120,
        LastModifiedTime=at(30),
    )
    found = describe(job("completed", *CAME_BACK, training_job_name="job1-r1"), first, second)
    assert (found["TrainingStartTime"], found["TrainingEndTime"]) == (at(2), at(9))
    assert (found["TrainingTimeInSeconds"], found["BillableTimeInSeconds"]) == (300, 180)
    assert found["LastModifiedTime"] == at(30)
    again = describe(job("preempted", *CAME_BACK), first)
    assert "TrainingEndTime" not in again
    assert again["TrainingTimeInSeconds"] == 180


def test_a_failure_has_sagemakers_words_first_and_no_more_than_it_allows() -> None:
    reason = {"code": "user-code", "message": "x" * 2000}
    failed = attempt("job1", "Failed", "Failed", FailureReason="AlgorithmError: exit code 1")
    found = describe(job("failed", *RAN, ("failed", 0), reason=reason), failed)
    assert found["FailureReason"].startswith("AlgorithmError: exit code 1 - user-code: xxx")
    assert len(found["FailureReason"]) == 1024


def test_a_failure_that_the_job_came_back_from_is_not_told_as_its_own() -> None:
    failed = attempt("job1", "Failed", "Failed", FailureReason="InternalServerError")
    assert "FailureReason" not in describe(job("pending", *RAN, ("pending", 1)), failed)


def test_final_metrics_are_the_newest_of_each_over_all_attempts() -> None:
    def metrics(**values: float) -> list[dict[str, Any]]:
        return [{"MetricName": name, "Value": value} for name, value in values.items()]

    found = describe(
        job("completed", *CAME_BACK),
        attempt("job1", "Stopped", "Stopped", FinalMetricDataList=metrics(loss=3.0, speed=1.0)),
        attempt("job1-r1", "Completed", "Completed", FinalMetricDataList=metrics(loss=2.0)),
    )
    assert {one["MetricName"]: one["Value"] for one in found["FinalMetricDataList"]} == {
        "loss": 2.0,
        "speed": 1.0,
    }
    assert "FinalMetricDataList" not in describe(
        job("running", *RAN), attempt("job1", "InProgress", "Training")
    )
