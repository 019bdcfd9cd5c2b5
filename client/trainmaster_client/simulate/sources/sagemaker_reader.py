"""Reads an account's training jobs from SageMaker: in its pace, and where it was cut off it goes on."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.errors import TrainingJobsUnreadableError
from trainmaster_client.simulate.histories.training_jobs import TrainingJob, training_job
from trainmaster_client.simulate.sources.account_export import Period

PAGE = 100
"""The most that ListTrainingJobs gives."""
LIST_PER_SECOND = 1.0
"""Half of the two a second that users observed the account to have."""
DESCRIBE_PER_SECOND = 4.0
"""Calls a second of DescribeTrainingJob and of ListTags; they slow down if that is too often."""
MOST_THROTTLES = 12
"""Most throttled calls in a row."""
LONGEST_INTERVAL_SECONDS = 30.0
_EASIER = 0.95
"""Factor of an interval after a call that was taken."""

_THROTTLED = frozenset(
    {"Throttling", "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown"}
)
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_MISSING = frozenset({"ValidationException", "ResourceNotFound", "ResourceNotFoundException"})


class SageMakerClient(Protocol):
    """The part of boto3's client that is used."""

    def list_training_jobs(self, **parameters: Any) -> Mapping[str, Any]: ...  # noqa: ANN401  as boto3 has it

    def describe_training_job(self, **parameters: Any) -> Mapping[str, Any]: ...  # noqa: ANN401

    def list_tags(self, **parameters: Any) -> Mapping[str, Any]: ...  # noqa: ANN401


@dataclass(slots=True, kw_only=True)
class Pace:
    """Limits calls a second; after throttling it allows fewer for a while."""

    per_second: float
    pause: Callable[[float], None]
    clock: Callable[[], float]
    """Seconds, never back."""
    _interval: float = field(init=False)
    _next_at: float = 0.0

    def __post_init__(self) -> None:
        self._interval = 1 / self.per_second

    def wait(self) -> None:
        now = self.clock()
        if now < self._next_at:
            self.pause(self._next_at - now)
        self._next_at = max(now, self._next_at) + self._interval

    def was_taken(self) -> None:
        self._interval = max(self._interval * _EASIER, 1 / self.per_second)

    def was_throttled(self) -> None:
        self._interval = min(self._interval * 2, LONGEST_INTERVAL_SECONDS)
        self._next_at = self.clock() + self._interval


@dataclass(slots=True, kw_only=True)
class Cache:
    """Training jobs that have ended, a line of JSON each, appended as they are read."""

    path: Path | None
    """File of the cache; None keeps nothing."""

    def read(self) -> dict[str, TrainingJob]:
        """Return the kept jobs by ARN; lines of other versions, and one that was cut off, are skipped."""
        if self.path is None or not self.path.exists():
            return {}
        jobs = {}
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    job = TrainingJob.of_document(json.loads(line))
                except (KeyError, TypeError, ValueError):
                    continue
                jobs[job.arn] = job
        return jobs

    def add(self, job: TrainingJob) -> None:
        if self.path is None or job.ended_at is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as lines:
            lines.write(json.dumps(job.as_document()) + "\n")


def usual_cache(region: str, env: Mapping[str, str] = os.environ) -> Path:
    """Return a file in the user's cache folder, for what can be made again."""
    folder = env.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(folder) / "trainmaster" / f"training-jobs-{region}.jsonl"


@dataclass(slots=True, kw_only=True)
class TrainingJobReader:
    """Everything that was there in a period."""

    client: SageMakerClient
    cache: Cache
    pause: Callable[[float], None]
    clock: Callable[[], float]
    deleted: int = 0
    """Number of jobs deleted between List and Describe."""
    _tags_denied: bool = False
    _paces: dict[str, Pace] = field(default_factory=dict)

    def listed(self, period: Period, progress: Callable[[int, int | None], None]) -> dict[str, str]:
        """Return names by ARN: jobs that changed in the period, and those still in progress."""
        names: dict[str, str] = {}
        overlapping = {"CreationTimeBefore": period.until}
        for filters in (
            {**overlapping, "LastModifiedTimeAfter": period.since},
            {**overlapping, "StatusEquals": "InProgress"},
        ):
            for summary in self._summaries(filters):
                ended = summary.get("TrainingJobStatus") != "InProgress" and summary.get("TrainingEndTime")
                if not ended or ended >= period.since:
                    names[summary["TrainingJobArn"]] = summary["TrainingJobName"]
                progress(len(names), None)
        return names

    def _summaries(self, filters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        parameters = {"MaxResults": PAGE, "SortBy": "CreationTime", "SortOrder": "Ascending", **filters}
        while True:
            page = self._call("ListTrainingJobs", self.client.list_training_jobs, parameters)
            yield from page["TrainingJobSummaries"]
            if not page.get("NextToken"):
                return
            parameters = {**parameters, "NextToken": page["NextToken"]}

    def read(
        self, listed: Mapping[str, str], known: Mapping[str, TrainingJob]
    ) -> Iterator[TrainingJob | None]:
        """Yield each job in turn; None if it was deleted meanwhile."""
        for arn, name in listed.items():
            job = known.get(arn)
            if job is None:
                job = self._described(name)
            elif job.tags is None and (tags := self._tags(arn)) is not None:
                job = replace(job, tags=tags)
                self.cache.add(job)
            yield job

    def _described(self, name: str) -> TrainingJob | None:
        try:
            answer = self._call(
                "DescribeTrainingJob", self.client.describe_training_job, {"TrainingJobName": name}
            )
        except ClientError:
            self.deleted += 1
            return None
        job = training_job(answer, self._tags(answer["TrainingJobArn"]))
        self.cache.add(job)
        return job

    def _tags(self, arn: str) -> dict[str, str] | None:
        """Return the job's tags; None if they may not be read."""
        if self._tags_denied:
            return None
        try:
            answer = self._call("ListTags", self.client.list_tags, {"ResourceArn": arn})
        except ClientError:
            return {}
        except TrainingJobsUnreadableError as error:
            if error.operation != "ListTags" or not error.is_denied:
                raise
            self._tags_denied = True
            return None
        return {tag["Key"]: tag["Value"] for tag in answer["Tags"]}

    def _call(
        self, operation: str, call: Callable[..., Mapping[str, Any]], parameters: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Call SageMaker. Raises TrainingJobsUnreadableError, and ClientError if there is no such job."""
        pace = self._pace(operation)
        for _ in range(MOST_THROTTLES):
            pace.wait()
            try:
                answer = call(**parameters)
            except ClientError as error:
                if _code(error) not in _THROTTLED:
                    raise _raised(operation, error) from error
                pace.was_throttled()
            except BotoCoreError as error:
                raise TrainingJobsUnreadableError(operation, why=f"{error}.") from error
            else:
                pace.was_taken()
                return answer
        raise TrainingJobsUnreadableError(operation, why="the account calls it too often, for minutes.")

    def _pace(self, operation: str) -> Pace:
        per_second = LIST_PER_SECOND if operation == "ListTrainingJobs" else DESCRIBE_PER_SECOND
        pace = Pace(per_second=per_second, pause=self.pause, clock=self.clock)
        return self._paces.setdefault(operation, pace)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _raised(operation: str, error: ClientError) -> Exception:
    code = _code(error)
    if code in _MISSING and operation != "ListTrainingJobs":
        return error
    message = error.response.get("Error", {}).get("Message", "")
    return TrainingJobsUnreadableError(operation, why=f"{code}: {message}", is_denied=code in _DENIED)
