"""Training jobs read from SageMaker, as recorded answers have them, and the jobs that they become."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from trainmaster.core.submission.admission import ulid
from trainmaster_client.errors import InvalidArgumentError, TrainingJobsUnreadableError
from trainmaster_client.simulate.engine.past_jobs import Break, History
from trainmaster_client.simulate.sources import Period, SageMakerReading, history_from_sagemaker, usual_cache

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
PERIOD = Period(since=NOON - timedelta(days=1), until=NOON + timedelta(days=1))
ARN = "arn:aws:sagemaker:eu-west-1:111122223333:training-job/"


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def described(
    name: str, *steps: tuple[str, float], status: str = "Completed", created: float = 0, **more: Any
) -> dict[str, Any]:
    """An answer of DescribeTrainingJob; steps: secondary statuses and their begin, by minutes after noon."""
    began = [NOON + minutes(at) for _, at in steps]
    transitions = [
        {"Status": what, "StartTime": begins} | ({"EndTime": ends} if ends else {})
        for (what, _), begins, ends in zip(steps, began, [*began[1:], None], strict=True)
    ]
    launched = next(
        (begins for (what, _), begins in zip(steps, began, strict=True) if what == "Downloading"), None
    )
    is_over = status != "InProgress"
    answer = {
        "TrainingJobName": name,
        "TrainingJobArn": ARN + name,
        "TrainingJobStatus": status,
        "SecondaryStatus": steps[-1][0],
        "RoleArn": "arn:aws:iam::111122223333:role/service-role/vision-training",
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 50},
        "StoppingCondition": {"MaxRuntimeInSeconds": 7200},
        "CreationTime": NOON + minutes(created),
        "LastModifiedTime": began[-1],
        "SecondaryStatusTransitions": transitions,
        "HyperParameters": {"token": "hf_secret"},
    }
    if launched:
        answer["TrainingStartTime"] = launched
    if is_over:
        answer["TrainingEndTime"] = began[-1]
    return answer | more


def ran(name: str, began: float = 0, trains: float = 30, **more: Any) -> dict[str, Any]:
    steps = [
        ("Starting", began),
        ("Downloading", began + 2),
        ("Training", began + 5),
        ("Uploading", began + 5 + trains),
        ("Completed", began + 6 + trains),
    ]
    return described(name, *steps, created=began, **more)


class Account:
    """boto3's client of an account with these training jobs."""

    def __init__(self, *jobs: dict[str, Any], tags: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.jobs = {job["TrainingJobName"]: job for job in jobs}
        self.tags = tags or {}
        self.calls: list[str] = []
        self.errors: dict[str, Iterator[Exception | None]] = {}
        self.page = 2
        self.now = 0.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def _called(self, operation: str) -> None:
        self.calls.append(operation)
        error = next(self.errors.get(operation, iter(())), None)
        if error is not None:
            raise error

    def list_training_jobs(self, **asked: Any) -> dict[str, Any]:
        self._called("ListTrainingJobs")
        assert asked["MaxResults"] == 100
        shown = [
            {
                name: job[name]
                for name in ("TrainingJobName", "TrainingJobArn", "TrainingJobStatus", "TrainingEndTime")
                if name in job
            }
            for job in self.jobs.values()
            if job["CreationTime"] < asked["CreationTimeBefore"]
            and job["LastModifiedTime"] > asked.get("LastModifiedTimeAfter", NOON - timedelta(days=900))
            and job["TrainingJobStatus"] == asked.get("StatusEquals", job["TrainingJobStatus"])
        ]
        first = int(asked.get("NextToken", 0))
        rest = {"NextToken": str(first + self.page)} if first + self.page < len(shown) else {}
        return {"TrainingJobSummaries": shown[first : first + self.page]} | rest

    def describe_training_job(self, **asked: Any) -> dict[str, Any]:
        self._called("DescribeTrainingJob")
        return self.jobs[asked["TrainingJobName"]]

    def list_tags(self, **asked: Any) -> dict[str, Any]:
        self._called("ListTags")
        tags = self.tags.get(asked["ResourceArn"].removeprefix(ARN), {})
        return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def refused(code: str, operation: str = "DescribeTrainingJob") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "not now"}}, operation)


def history(account: Account, **how: Any) -> History:
    reading = SageMakerReading(pause=account.wait, clock=lambda: account.now, **how)
    return history_from_sagemaker(account, PERIOD, reading)


def said(found: History, beginning: str) -> list[str]:
    return [one for one in found.not_known if one.startswith(beginning)]


def test_every_page_is_listed_and_every_job_described(tmp_path: Path) -> None:
    account = Account(*(ran(f"job-{number}", number) for number in range(5)))
    told: list[str] = []
    progress: list[tuple[int, int | None]] = []
    found = history(
        account, announce=told.append, progress=lambda done, total: progress.append((done, total))
    )
    assert [job.name for job in found.jobs] == [f"job-{number}" for number in range(5)]
    assert account.calls.count("ListTrainingJobs") == 4, "three pages, and what is in progress"
    assert told == ["5 training jobs to read: less than a minute."]
    assert progress[-1] == (5, 5)
    assert found.source == "SageMaker of account 111122223333 in eu-west-1, 2026-11-01 to 2026-11-03"


def test_a_training_job_becomes_a_job_with_one_attempt() -> None:
    (job,) = history(Account(ran("a", CheckpointConfig={"S3Uri": "s3://b/c"}))).jobs
    assert (job.name, job.team, job.submitted_by, job.pool) == (
        "a",
        "vision-training",
        "vision-training",
        None,
    )
    assert (job.instances, job.capacity_type, job.max_runtime) == (
        {"ml.g5.xlarge": 2},
        "on-demand",
        minutes(120),
    )
    assert (job.submitted_at, job.cold_start, job.trains_for, job.end) == (
        NOON,
        minutes(3),
        minutes(31),
        "completed",
    )
    assert job.saves_every == minutes(30)
    (attempt,) = job.attempts
    assert (attempt.started_at, attempt.training_since) == (NOON + minutes(2), NOON + minutes(5))


def test_interruptions_of_spot_instances_are_breaks_where_they_were() -> None:
    spot = described(
        "a",
        ("Downloading", 0),
        ("Training", 5),
        ("Interrupted", 45),
        ("Downloading", 50),
        ("Training", 55),
        ("Completed", 75),
        EnableManagedSpotTraining=True,
        CheckpointConfig={"S3Uri": "s3://b/c"},
    )
    (job,) = history(Account(spot)).jobs
    assert (job.capacity_type, job.breaks) == ("spot", (Break(after=minutes(40), code="interrupted"),))
    assert job.trains_for == minutes(60 - 10), "10 of 40 minutes were after the checkpoint of the 30th"
    (lost_all,) = history(Account(spot | {"CheckpointConfig": {}})).jobs
    assert lost_all.trains_for == minutes(20)


def test_instances_of_groups_and_of_a_choice_are_counted() -> None:
    groups = [
        {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"},
        {"InstanceType": "ml.m5.xlarge", "InstanceCount": 3, "InstanceGroupName": "b"},
    ]
    chosen = {"SelectedInstanceType": "ml.g6.xlarge", "SelectedInstanceCount": 4}
    found = history(
        Account(
            ran("groups", ResourceConfig={"InstanceGroups": groups}),
            ran("chosen", 1, ResourceConfig=chosen),
            ran("serverless", 2, ResourceConfig={}),
        )
    )
    assert [job.instances for job in found.jobs] == [
        {"ml.g5.xlarge": 1, "ml.m5.xlarge": 3},
        {"ml.g6.xlarge": 4},
    ]
    assert said(found, "1 training job had no instances of their own")


def test_failures_stops_limits_and_jobs_in_progress_end_as_they_did() -> None:
    found = history(
        Account(
            described("failed", ("Downloading", 0), ("Training", 5), ("Failed", 9), status="Failed"),
            described("stopped", ("Downloading", 1), ("Training", 5), ("Stopped", 9), status="Stopped"),
            described("never", ("Starting", 2), ("Failed", 32), status="Failed", created=2),
            described("runs", ("Downloading", 3), ("Training", 5), status="InProgress", created=3),
        )
    )
    by_name = {job.name: job for job in found.jobs}
    assert {name: job.end for name, job in by_name.items()} == {
        "failed": "failed",
        "stopped": "stopped",
        "never": "failed",
        "runs": "completed",
    }
    assert (by_name["never"].trains_for, by_name["never"].withdrawn_after) == (timedelta(), minutes(30))
    assert by_name["runs"].trains_for == minutes(120), "twice the day so far, but no more than its limit"
    assert said(found, "1 job had not ended when the history was read")


def test_a_warm_start_is_no_cold_start() -> None:
    account = Account(
        ran("first", WarmPoolStatus={"Status": "Reused", "ReusedByJob": "second"}), ran("second", 40)
    )
    assert [job.cold_start for job in history(account).jobs] == [minutes(3), None]


def test_attempts_of_a_trainmaster_are_one_job() -> None:
    entry = ulid(NOON - minutes(20), b"0123456789")
    marks = [{"trainmaster:job": entry, "trainmaster:attempt": str(number)} for number in range(2)]
    first = described(
        "a", ("Downloading", 0), ("Training", 5), ("Stopping", 15), ("Stopped", 16), status="Stopped"
    )
    account = Account(
        ran("a-r1-0f", 20, trains=30),
        first,
        tags={"a": marks[0] | {"trainmaster:priority": "7"}, "a-r1-0f": marks[1]},
    )
    (job,) = history(account).jobs
    assert (job.name, job.entry_id, job.priority) == ("a", entry, 7)
    assert job.submitted_at == NOON - minutes(20)
    assert [one.end for one in job.attempts] == ["preemption", "completed"]
    assert job.trains_for == minutes(10 + 31)


def test_teams_and_users_come_from_tags() -> None:
    profile = "arn:aws:sagemaker:eu-west-1:111122223333:user-profile/d-1/ada"
    account = Account(
        ran("a"), ran("b", 1), tags={"a": {"cost-centre": "speech", "sagemaker:user-profile-arn": profile}}
    )
    found = history(account, team_tag="cost-centre")
    assert [(job.team, job.submitted_by) for job in found.jobs] == [
        ("speech", "ada"),
        ("vision-training", "vision-training"),
    ]
    assert said(found, "The team of 1 of 2 training jobs is not known")


def test_what_was_read_is_not_read_again_and_has_no_secrets(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "jobs.jsonl"
    account = Account(ran("a"), described("b", ("Downloading", 1), ("Training", 5), status="InProgress"))
    first = history(account, cache=path)
    assert oct(path.stat().st_mode)[-3:] == "600"
    assert "hf_secret" not in path.read_text()
    with path.open("a") as lines:
        lines.write('{"arn": "cut')
    account.calls.clear()
    told: list[str] = []
    assert history(account, cache=path, announce=told.append).jobs == first.jobs
    assert account.calls.count("DescribeTrainingJob") == 1, "only what was in progress"
    assert told == ["2 training jobs to read, 1 of them were read before: less than a minute."]


def test_a_run_that_broke_off_goes_on(tmp_path: Path) -> None:
    account = Account(*(ran(f"job-{number}", number) for number in range(4)))
    away = EndpointConnectionError(endpoint_url="https://api.sagemaker.eu-west-1.amazonaws.com")
    account.errors["DescribeTrainingJob"] = iter([None, None, away])
    with pytest.raises(TrainingJobsUnreadableError, match="the same command continues from there"):
        history(account, cache=tmp_path / "jobs.jsonl")
    account.calls.clear()
    assert len(history(account, cache=tmp_path / "jobs.jsonl").jobs) == 4
    assert account.calls.count("DescribeTrainingJob") == 2


def test_calls_keep_their_pace_and_slow_down_where_they_are_too_many() -> None:
    account = Account(*(ran(f"job-{number}", number) for number in range(9)))
    history(account)
    assert account.now >= 8 / 4, "four a second"
    calm = account.now
    account = Account(*(ran(f"job-{number}", number) for number in range(9)))
    account.errors["DescribeTrainingJob"] = iter([refused("ThrottlingException")] * 3)
    assert len(history(account).jobs) == 9
    assert account.now > calm + 2
    account.errors["DescribeTrainingJob"] = iter([refused("ThrottlingException")] * 99)
    with pytest.raises(TrainingJobsUnreadableError, match="the account calls it too often"):
        history(account)


@pytest.mark.parametrize("operation", ["ListTrainingJobs", "DescribeTrainingJob"])
def test_a_call_that_is_denied_names_the_action(operation: str) -> None:
    account = Account(ran("a"))
    account.errors[operation] = iter([refused("AccessDeniedException", operation)])
    with pytest.raises(TrainingJobsUnreadableError, match=f"You need sagemaker:{operation};"):
        history(account)


def test_without_the_right_to_read_tags_there_are_no_teams() -> None:
    def denied() -> Account:
        account = Account(ran("a"), ran("b", 1))
        account.errors["ListTags"] = iter([refused("AccessDeniedException", "ListTags")])
        return account

    found = history(denied())
    assert said(found, "The tags of all 2 training jobs could not be read: sagemaker:ListTags is missing.")
    with pytest.raises(TrainingJobsUnreadableError, match="You need sagemaker:ListTags;"):
        history(denied(), team_tag="team")


def test_a_job_that_was_deleted_meanwhile_is_counted() -> None:
    account = Account(ran("a"), ran("b", 1))
    account.errors["DescribeTrainingJob"] = iter([refused("ValidationException")])
    found = history(account)
    assert [job.name for job in found.jobs] == ["b"]
    assert said(found, "1 training job deleted while they were read")


def test_an_account_without_jobs_says_so() -> None:
    with pytest.raises(InvalidArgumentError, match="no jobs to replay"):
        history(Account())


def test_the_cache_is_in_the_users_folder_for_it() -> None:
    assert usual_cache("eu-west-1", {"XDG_CACHE_HOME": "/c"}) == Path(
        "/c/trainmaster/training-jobs-eu-west-1.jsonl"
    )
