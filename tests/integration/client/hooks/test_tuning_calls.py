"""A tuning job under the hooks: boto3 outside, a queue that remembers, and S3 beside it."""

import json
import threading
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client.bypasses import QueueBypassWarning
from trainmaster_client.hook import install
from trainmaster_client.hooks import tuning_job_calls
from trainmaster_client.hooks.botocore_events import PlainClients, answered, plain_client
from trainmaster_client.tuning.study_runs import StudyPasses

from tests.builders import NOON
from tests.e2e.plane import eventually
from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, Scripted
from tests.integration.client.hooks.tuning_world import Document, World, finish, world
from tests.unit.client.tuning.requests import choices, request

__all__ = ["world"]

NAME = "HyperParameterTuningJobName"
THREAD = "trainmaster-tuning-tune"
GRID: dict[str, Any] = {
    "ParameterRanges": choices(a=["1", "2"], b=["x", "y"]),
    "ResourceLimits": {"MaxParallelTrainingJobs": 2},
}


def test_a_tuning_job_runs_its_trials_as_jobs_of_the_queue_and_is_described_as_sagemaker_would(
    world: World,
) -> None:
    arn = world.sagemaker.create_hyper_parameter_tuning_job(**request(strategy="Grid", **GRID))
    assert (
        arn[f"{NAME[:-4]}Arn"] == f"arn:aws:sagemaker:{REGION}:123456789012:hyper-parameter-tuning-job/tune"
    )
    assert len(world.queue.added) == 2
    for number, loss in ((1, 3.0), (2, 1.0), (3, None), (4, 2.0)):
        eventually(lambda: len(world.queue.jobs), lambda found, number=number: found >= number)  # type: ignore[misc]
        world.end(number, loss, state="failed" if loss is None else "completed")
    found = world.eventually(lambda seen: seen["HyperParameterTuningJobStatus"] == "Completed")
    assert sorted(world.queue.added) == sorted(set(world.queue.added))
    assert found["TrainingJobStatusCounters"] == {
        "Completed": 3,
        "InProgress": 0,
        "RetryableError": 0,
        "NonRetryableError": 1,
        "Stopped": 0,
    }
    assert found["ObjectiveStatusCounters"] == {"Succeeded": 3, "Pending": 0, "Failed": 1}
    best = found["BestTrainingJob"]
    assert best["FinalHyperParameterTuningJobObjectiveMetric"] == {
        "Type": "Minimize",
        "MetricName": "loss",
        "Value": 1.0,
    }
    assert "-002-" in best["TrainingJobName"]
    assert best["TunedHyperParameters"] == {"a": "1", "b": "y"}
    limits = found["HyperParameterTuningJobConfig"]["ResourceLimits"]
    assert limits == {"MaxNumberOfTrainingJobs": 4, "MaxParallelTrainingJobs": 2}

    by_value = world.trials(SortBy="FinalObjectiveMetricValue", SortOrder="Descending", MaxResults=2)
    numbers = [one["TrainingJobName"].split("-")[1] for one in by_value["TrainingJobSummaries"]]
    assert numbers == ["001", "004"]
    rest = world.trials(
        SortBy="FinalObjectiveMetricValue", SortOrder="Descending", NextToken=by_value["NextToken"]
    )
    assert ["-002-" in one["TrainingJobName"] for one in rest["TrainingJobSummaries"]] == [True]
    failed = world.trials(StatusEquals="Failed")["TrainingJobSummaries"]
    assert [(one["TrainingJobStatus"], one["ObjectiveStatus"]) for one in failed] == [("Failed", "Failed")]


def test_the_same_request_again_is_the_same_tuning_job_and_another_one_under_its_name_is_refused(
    world: World,
) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    names = set(world.queue.jobs)
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    assert set(world.queue.jobs) == names
    with pytest.raises(ClientError) as refused:
        world.sagemaker.create_hyper_parameter_tuning_job(**request(RandomSeed=5))
    assert refused.value.response["Error"]["Code"] == "ResourceInUse"


def test_O6_a_study_that_has_ended_is_not_another_nights(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = world.sagemaker.create_hyper_parameter_tuning_job
    create(**request())
    world.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")
    world.eventually(lambda seen: seen["HyperParameterTuningJobStatus"] == "Stopped")
    create(**request())  # within a minute: the answer may have been lost
    monkeypatch.setattr(tuning_job_calls, "REPEATED_WITHIN", timedelta(0))
    with pytest.raises(ClientError, match=r"ended on .* UTC: Stopped") as refused:
        create(**request())
    assert refused.value.response["Error"]["Code"] == "ResourceInUse"


def test_O7_a_study_that_has_not_ended_is_continued_whenever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = world.sagemaker.create_hyper_parameter_tuning_job
    create(**request())
    names = set(world.queue.jobs)
    monkeypatch.setattr(tuning_job_calls, "REPEATED_WITHIN", timedelta(0))
    create(**request())
    assert set(world.queue.jobs) == names


def test_O6_trials_of_a_study_that_was_deleted_are_not_those_of_a_new_one(world: World) -> None:
    create = world.sagemaker.create_hyper_parameter_tuning_job
    create(**request())
    world.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")
    world.eventually(lambda seen: seen["HyperParameterTuningJobStatus"] == "Stopped")
    s3: Any = world.session.client("s3")
    place = {"Bucket": "bucket", "Key": "out/tune/trainmaster-study.json"}
    study = s3.get_object(**place)["Body"].read()
    s3.delete_object(**place)
    world.queue.violation, world.queue.rule = "a job of this name was stopped", "name-taken"
    with pytest.raises(ClientError, match="use another name for the tuning job") as refused:
        create(**request())
    assert refused.value.response["Error"]["Code"] == "ResourceInUse"
    s3.put_object(**place, Body=study)


def test_O7_trials_are_submitted_without_a_key_so_that_two_processes_get_one_job(world: World) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    assert world.queue.keys == [None] * len(world.queue.added)


def test_trials_that_the_policy_would_refuse_are_refused_when_the_tuning_job_is_created(world: World) -> None:
    world.queue.violation = "no model_name"
    with pytest.raises(ClientError, match="Tags: no model_name") as refused:
        world.sagemaker.create_hyper_parameter_tuning_job(**request())
    assert refused.value.response["Error"]["Code"] == "ValidationException"
    assert world.queue.added == []
    assert "Contents" not in world.session.client("s3").list_objects_v2(Bucket="bucket")


def test_stopping_cancels_what_waits_and_runs_and_starts_nothing_more(world: World) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    world.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")
    found = world.eventually(lambda seen: seen["HyperParameterTuningJobStatus"] == "Stopped")
    assert found["TrainingJobStatusCounters"]["Stopped"] == 2
    assert {one["state"] for one in world.queue.jobs.values()} == {"stopped"}
    with pytest.raises(ClientError, match="has ended: Stopped"):
        world.sagemaker.stop_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")


def test_another_process_finds_the_study_by_the_name_of_its_first_trial(world: World) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    other = boto3.Session(ACCESS_KEY, SECRET_KEY, region_name=REGION)
    install(other, api_url=world.api.url)
    client = other.client("sagemaker")
    found = client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="tune")
    assert found["TrainingJobStatusCounters"]["InProgress"] == 2
    tags = client.list_tags(ResourceArn=found["HyperParameterTuningJobArn"])["Tags"]
    assert tags == request()["Tags"]


def test_a_warm_start_begins_with_what_the_parents_found_in_the_same_space(world: World) -> None:
    world.sagemaker.create_hyper_parameter_tuning_job(**request(strategy="Grid", **GRID))
    world.end(1, 3.0)
    world.end(2, None, state="failed")
    world.eventually(lambda seen: seen["TrainingJobStatusCounters"]["Completed"] == 1)
    parents = [{"HyperParameterTuningJobName": "tune"}]
    warm = {"ParentHyperParameterTuningJobs": parents, "WarmStartType": "TransferLearning"}
    limits = {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1}
    child = request("child", **GRID | {"ResourceLimits": limits})
    world.sagemaker.create_hyper_parameter_tuning_job(**child, WarmStartConfig=warm)
    stored = world.session.client("s3").get_object(Bucket="bucket", Key="out/child/trainmaster-study.json")
    assert json.loads(stored["Body"].read())["inherited"] == [
        {"parameters": {"a": "1", "b": "x"}, "value": 3.0}
    ]


def listed(world: World, **options: Any) -> list[str]:
    """Names, page by page."""
    names: list[str] = []
    token: dict[str, str] = {}
    while True:
        page = world.sagemaker.list_hyper_parameter_tuning_jobs(**options, **token)
        names += [one["HyperParameterTuningJobName"] for one in page["HyperParameterTuningJobSummaries"]]
        token = {"NextToken": page["NextToken"]} if "NextToken" in page else {}
        if not token:
            return names


def test_studies_are_listed_among_sagemakers_own_tuning_jobs(world: World) -> None:
    theirs = [
        {
            "HyperParameterTuningJobName": name,
            "HyperParameterTuningJobStatus": "Completed",
            "Strategy": "Random",
            "CreationTime": NOON,
            "LastModifiedTime": NOON,
        }
        for name in ("also", "other", "zoo")
    ]

    def own(params: Document, **_: object) -> Any:
        """Two on a page."""
        asked = json.loads(params["body"])
        begin = int(asked.get("NextToken", 0))
        more = {"NextToken": str(begin + 2)} if begin + 2 < len(theirs) else {}
        return answered({"HyperParameterTuningJobSummaries": theirs[begin : begin + 2], **more})

    world.sagemaker.create_hyper_parameter_tuning_job(**request())
    client, s3 = plain_client(world.session, "sagemaker"), world.session.client("s3")
    client.meta.events.register("before-call.sagemaker.ListHyperParameterTuningJobs", own)
    with patch.object(PlainClients, "of", lambda _, service, __: client if service == "sagemaker" else s3):
        assert listed(world, SortBy="Name", SortOrder="Ascending", MaxResults=2) == [
            "also",
            "other",
            "tune",
            "zoo",
        ]
        assert listed(world, SortBy="Name", SortOrder="Ascending", NameContains="tun")[-1:] == ["zoo"]
        assert "tune" in listed(world, StatusEquals="InProgress", MaxResults=1)
        assert "tune" not in listed(world, StatusEquals="Failed")
        finish(world)


def test_who_may_not_see_the_queue_sees_sagemakers_own_tuning_jobs(world: World) -> None:
    client = world.sagemaker
    summary = {"HyperParameterTuningJobName": "own", "HyperParameterTuningJobStatus": "Completed"}
    own = answered({"HyperParameterTuningJobSummaries": [summary]})
    refused = Scripted(status=403, document={"title": "Not yours", "detail": "you are in no team"})
    with (
        patch.object(world.api, "answer", lambda _: refused),
        patch.object(type(client), "_make_request", lambda *_: own),
    ):
        assert listed(world) == ["own"]
        found = client.describe_hyper_parameter_tuning_job(HyperParameterTuningJobName="own")
    assert "HyperParameterTuningJobSummaries" in found, "SageMaker was asked"


def test_a_client_of_another_region_tunes_at_sagemaker_with_a_warning(world: World) -> None:
    client = world.session.client("sagemaker", region_name="us-east-1")
    own = answered({"HyperParameterTuningJobArn": "arn:own"})
    with (
        patch.object(type(client), "_make_request", lambda *_: own),
        pytest.warns(QueueBypassWarning, match="CreateHyperParameterTuningJob goes to us-east-1"),
    ):
        assert (
            client.create_hyper_parameter_tuning_job(**request())["HyperParameterTuningJobArn"] == "arn:own"
        )
    assert world.queue.added == []


def test_where_the_api_gives_no_answer_a_tuning_job_bypasses_the_queue_only_if_that_was_asked_for(
    world: World,
) -> None:
    own = answered({"HyperParameterTuningJobArn": "arn:own"})
    away = boto3.Session(region_name=REGION)
    install(away, api_url="http://127.0.0.1:1/prod")
    with pytest.raises(ClientError, match="ServiceUnavailable"):
        away.client("sagemaker").create_hyper_parameter_tuning_job(**request())
    install(away, api_url="http://127.0.0.1:1/prod", on_unreachable="direct")
    client = away.client("sagemaker")
    with (
        patch.object(type(client), "_make_request", lambda *_: own),
        pytest.warns(QueueBypassWarning, match="tune bypasses the queue"),
    ):
        client.create_hyper_parameter_tuning_job(**request())


def test_a_thread_that_is_gone_is_begun_again_by_who_waits(world: World) -> None:
    with patch.object(StudyPasses, "step", return_value=None):  # as if the study was gone: the thread ends
        world.sagemaker.create_hyper_parameter_tuning_job(**request())
        eventually(lambda: [one.name for one in threading.enumerate()], lambda names: THREAD not in names)
    world.eventually(lambda _: len(world.queue.added) == 2)
