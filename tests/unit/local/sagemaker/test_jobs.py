"""What steps a training job can take, and what each changes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.sagemaker.jobs import IllegalStepError, TrainingJob, Transition
from local.sagemaker.spec import TrainingSpec
from local.sagemaker.statuses import FINAL, MESSAGES, TRANSITIONS, Primary, Secondary
from local.sagemaker.views import description, event_detail
from tests.integration.local.sagemaker_world import request

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
S = Secondary


def a_job(**changes: Any) -> TrainingJob:
    body = request("job") | changes
    return TrainingJob(
        name="job",
        arn="arn:aws:sagemaker:us-east-1:123456789012:training-job/job",
        created_by="arn:aws:iam::123456789012:user/ann",
        created_at=NOON,
        modified_at=NOON,
        request=body,
        spec=TrainingSpec.from_request(body),
        tags={"team": "vision"},
        transitions=(Transition(status=S.STARTING, start=NOON),),
    )


def walked(job: TrainingJob, *steps: Secondary) -> TrainingJob:
    """One step a minute."""
    for number, step in enumerate(steps, start=1):
        job = job.moved_to(step, NOON + timedelta(minutes=number))
    return job


SPOT = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 90},
}
TO_THE_END = (S.PENDING, S.DOWNLOADING, S.TRAINING, S.UPLOADING, S.COMPLETED)


def test_every_status_has_a_row_and_a_message():
    assert set(TRANSITIONS) == set(MESSAGES) == set(Secondary)


def test_a_final_status_is_never_left():
    assert all(not TRANSITIONS[status] for status in FINAL)


def test_each_step_closes_the_one_before():
    job = walked(a_job(), S.PENDING, S.DOWNLOADING)

    assert [(one.status, one.start.minute, one.end and one.end.minute) for one in job.transitions] == [
        (S.STARTING, 0, 1),
        (S.PENDING, 1, 2),
        (S.DOWNLOADING, 2, None),
    ]
    assert job.modified_at == NOON + timedelta(minutes=2)


def test_time_is_billed_from_the_instances_to_the_end():
    job = walked(a_job(), *TO_THE_END)

    assert (job.primary, job.secondary) == (Primary.COMPLETED, S.COMPLETED)
    assert job.started_at == NOON + timedelta(minutes=2)
    assert job.ended_at == NOON + timedelta(minutes=5)
    assert job.training_seconds == job.billable_seconds == 180


def test_a_job_that_never_had_instances_has_no_times():
    job = walked(a_job(), S.PENDING, S.STOPPING, S.STOPPED)

    assert job.training_seconds is None
    shown = description(job, now=NOON)
    assert "TrainingStartTime" not in shown
    assert "TrainingEndTime" not in shown
    assert "BillableTimeInSeconds" not in shown


def test_spot_time_is_billed_at_a_discount_and_not_while_there_are_no_instances():
    job = walked(
        a_job(**SPOT),
        *(S.PENDING, S.DOWNLOADING, S.TRAINING, S.INTERRUPTED, S.RESTARTING),
        *(S.DOWNLOADING, S.TRAINING, S.UPLOADING, S.COMPLETED),
    )

    assert job.training_seconds == 420
    assert job.billable_seconds == 90  # 0.3 of the 300 s with instances


def test_a_stopped_job_that_uploads_is_still_stopping():
    job = walked(a_job(), S.PENDING, S.DOWNLOADING, S.TRAINING, S.STOPPING, S.UPLOADING)

    assert (job.primary, job.secondary) == (Primary.STOPPING, S.UPLOADING)


def test_a_job_stopped_while_it_uploaded_can_still_complete():
    job = walked(a_job(), *TO_THE_END[:4], S.STOPPING, S.COMPLETED)

    assert job.primary is Primary.COMPLETED


def test_an_illegal_step_is_refused():
    with pytest.raises(IllegalStepError):
        walked(a_job(), S.TRAINING)


def test_a_failure_reason_has_at_most_1024_characters():
    job = a_job().failed("x" * 2000, NOON)

    assert job.failure_reason == "x" * 1024
    assert description(job, now=NOON)["FailureReason"] == "x" * 1024


@given(st.data())
def test_on_every_legal_walk_the_shown_times_are_in_order(data: st.DataObject):
    job = a_job()
    for minute in range(1, 12):
        if job.is_final:
            break
        step = data.draw(st.sampled_from(sorted(TRANSITIONS[job.secondary])))
        job = job.moved_to(step, NOON + timedelta(minutes=minute))
    shown = description(job, now=NOON)
    starts = [one["StartTime"] for one in shown["SecondaryStatusTransitions"]]
    ends = [one.get("EndTime") for one in shown["SecondaryStatusTransitions"]]

    assert starts == sorted(starts)
    assert ends[:-1] == starts[1:]
    assert (ends[-1] is not None) == job.is_final
    assert shown["SecondaryStatus"] == shown["SecondaryStatusTransitions"][-1]["Status"]


def test_an_event_has_just_the_fields_of_the_service():
    job = replace(a_job(Environment={"A": "b"}), tags={"team": "vision"}).failed("why", NOON)

    detail = event_detail(job)

    assert set(detail) == {
        "TrainingJobName",
        "TrainingJobArn",
        "TrainingJobStatus",
        "SecondaryStatus",
        "SecondaryStatusTransitions",
        "AlgorithmSpecification",
        "RoleArn",
        "OutputDataConfig",
        "ModelArtifacts",
        "ResourceConfig",
        "StoppingCondition",
        "CreationTime",
        "LastModifiedTime",
        "Tags",
    }
    assert detail["Tags"] == {"team": "vision"}
    assert detail["CreationTime"] == 1780315200000
    assert detail["SecondaryStatusTransitions"][0]["StartTime"] == 1780315200000


def test_a_description_never_shows_tags_and_always_a_key():
    shown = description(a_job(), now=NOON)

    assert "Tags" not in shown
    assert shown["OutputDataConfig"]["KmsKeyId"] == ""
    assert shown["ModelArtifacts"] == {"S3ModelArtifacts": "s3://twin-bucket/output/job/output/model.tar.gz"}


def test_a_job_may_run_for_a_day_unless_it_says_otherwise():
    body = request("job")
    del body["StoppingCondition"]

    assert TrainingSpec.from_request(body).max_runtime == timedelta(days=1)


def test_the_selected_type_is_known_when_the_instances_are_there_and_not_before():
    preferences = [{"InstanceType": "ml.p5.48xlarge"}, {"InstanceType": "ml.p4d.24xlarge"}]
    resources = {"InstancePreferences": preferences, "InstanceCount": 2, "VolumeSizeInGB": 1}
    job = walked(a_job(ResourceConfig=resources), S.PENDING)
    job = replace(job, allotted=job.spec.clusters[1])

    assert job.selected is None
    assert description(job, now=NOON)["ResourceConfig"] == resources
    launched = job.moved_to(S.DOWNLOADING, NOON)
    assert description(launched, now=NOON)["ResourceConfig"] == resources | {
        "SelectedInstanceType": "ml.p4d.24xlarge",
        "SelectedInstanceCount": 2,
    }
