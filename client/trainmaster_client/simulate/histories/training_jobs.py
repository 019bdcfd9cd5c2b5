"""Training jobs as SageMaker describes them: what a replay needs of each; attempts of a job put together."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.adapters.sagemaker_answers import in_milliseconds, observation_of
from trainmaster.core.diagnosis.diagnosis import FailureEvidence, diagnose
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.request.options import MAX_PRIORITY
from trainmaster.core.request.request import TAG_ATTEMPT, TAG_JOB

from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob
from trainmaster_client.simulate.histories.line_problems import count_of, part_of

TAG_PRIORITY = "trainmaster:priority"
TAG_PREEMPTIBLE = "trainmaster:preemptible"
TAG_USER_PROFILE = "sagemaker:user-profile-arn"
"""Tag of jobs that Studio created. Source: SageMaker developer guide, tags that Studio adds."""
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_TIME_CHARACTERS = 10
"""First characters of a ULID: milliseconds since 1970. Source: github.com/ulid/spec."""
_EARLIEST = datetime(2017, 1, 1, tzinfo=UTC)
"""Earliest instant of a training job: an earlier one is not an instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """The part that is kept of a training job: no hyperparameters, no environment, no names of data."""

    arn: str
    name: str
    role: str
    """Name of its execution role."""
    created_at: datetime
    launched_at: datetime | None
    """Instant at which it had its instances."""
    training_since: datetime | None
    ended_at: datetime | None
    """End of the job; None while it is in progress."""
    end: str | None
    """Reason code; None while it is in progress."""
    intervals_s: tuple[float, ...]
    """Times in Training that are over; interruptions of spot instances are between them."""
    instances: Mapping[str, int]
    """Instances by type; empty if SageMaker chose its own."""
    is_spot: bool
    max_runtime_s: int
    saves_checkpoints: bool
    reused_by: str | None
    """The training job that took over its warm pool."""
    tags: Mapping[str, str] | None
    """Tags; None if they could not be read."""

    def as_document(self) -> dict[str, Any]:
        """Return the job as JSON values."""
        document = asdict(self)
        return {
            name: field_value.isoformat() if isinstance(field_value, datetime) else field_value
            for name, field_value in document.items()
        }

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "TrainingJob":
        """Read the job from JSON values. Raises KeyError, TypeError or ValueError."""
        instants = {"created_at", "launched_at", "training_since", "ended_at"}
        values = {
            name: datetime.fromisoformat(field_value)
            if name in instants and field_value is not None
            else field_value
            for name, field_value in document.items()
        }
        return cls(**values | {"intervals_s": tuple(document["intervals_s"])})


def training_job(answer: Mapping[str, Any], tags: Mapping[str, str] | None) -> TrainingJob:
    """Read an answer of DescribeTrainingJob; ``tags`` is None if they could not be read."""
    seen = observation_of(answer)
    stopping = answer.get("StoppingCondition", {})
    return TrainingJob(
        arn=seen.training_job_arn,
        name=seen.training_job_name,
        role=str(answer.get("RoleArn", "")).rpartition("/")[2] or "unknown",
        created_at=in_milliseconds(answer["CreationTime"]),
        launched_at=seen.launched_at,
        training_since=seen.training_since,
        ended_at=seen.ended_at,
        end=_end(seen.status, seen.secondary_status, seen.failure_reason) if seen.has_ended else None,
        intervals_s=tuple(
            (interval.until - interval.since).total_seconds()
            for interval in seen.training_intervals
            if interval.until
        ),
        instances=_instances(answer.get("ResourceConfig", {})),
        is_spot=bool(answer.get("EnableManagedSpotTraining")),
        max_runtime_s=int(stopping.get("MaxRuntimeInSeconds", 86_400)),
        saves_checkpoints=bool(answer.get("CheckpointConfig", {}).get("S3Uri")),
        reused_by=answer.get("WarmPoolStatus", {}).get("ReusedByJob"),
        tags=tags,
    )


def _end(status: str, secondary: str, reason: str | None) -> str:
    if status == "Completed":
        return ReasonCode.COMPLETED.value
    if status == "Failed":
        return diagnose(FailureEvidence(failure_reason=reason)).failure_class.value
    by_limit = {"MaxRuntimeExceeded": ReasonCode.MAX_RUNTIME, "MaxWaitTimeExceeded": ReasonCode.MAX_WAIT}
    return by_limit.get(secondary, ReasonCode.STOPPED_OUTSIDE).value


def _instances(resources: Mapping[str, Any]) -> dict[str, int]:
    parts = resources.get("InstanceGroups") or [
        {
            "InstanceType": resources.get("SelectedInstanceType") or resources.get("InstanceType"),
            "InstanceCount": resources.get("SelectedInstanceCount") or resources.get("InstanceCount"),
        }
    ]
    counts: defaultdict[str, int] = defaultdict(int)
    for part in parts:
        if part.get("InstanceType") and part.get("InstanceCount"):
            counts[part["InstanceType"]] += part["InstanceCount"]
    return dict(counts)


def exported_jobs(training_jobs: Iterable[TrainingJob], *, team_tag: str | None) -> Iterator[ExportedJob]:
    """Group training jobs: those a trainmaster made for one job are its attempts, each other is a job."""
    of_job: defaultdict[str, list[TrainingJob]] = defaultdict(list)
    jobs = list(training_jobs)
    for training in jobs:
        if training.instances:
            of_job[(training.tags or {}).get(TAG_JOB) or training.arn].append(training)
    reusing = {training.reused_by for training in jobs if training.reused_by}
    for attempts in of_job.values():
        yield _job(sorted(attempts, key=_attempt_order), reusing, team_tag=team_tag)


def _attempt_order(training: TrainingJob) -> tuple[int, datetime]:
    number = (training.tags or {}).get(TAG_ATTEMPT, "")
    return (int(number) if number.isdecimal() else 0, training.created_at)


def _job(tried: Sequence[TrainingJob], reusing: set[str], *, team_tag: str | None) -> ExportedJob:
    first, last = tried[0], tried[-1]
    tags = first.tags or {}
    entry_id = tags.get(TAG_JOB)
    priority = tags.get(TAG_PRIORITY, "")
    ran = [
        training
        for training in tried
        if training.launched_at is not None or training.training_since is not None
    ]
    return ExportedJob(
        name=first.name,
        team=(tags.get(team_tag) if team_tag else None) or first.role,
        submitted_by=tags.get(TAG_USER_PROFILE, "").rpartition("/")[2] or first.role,
        pool=None,
        instances=first.instances,
        capacity_type="spot" if first.is_spot else "on-demand",
        priority=min(int(priority), MAX_PRIORITY) if priority.isdecimal() else 0,
        submitted_at=_submitted(entry_id) or first.created_at,
        max_runtime=timedelta(seconds=max(training.max_runtime_s for training in tried)),
        saves_checkpoints=first.saves_checkpoints,
        attempts=tuple(_attempt(training, reusing, is_last=training is last) for training in ran),
        end=last.end,
        ended_at=last.ended_at,
        entry_id=entry_id,
        preemptible=tags.get(TAG_PREEMPTIBLE) != "false",
    )


def _attempt(training: TrainingJob, reusing: set[str], *, is_last: bool) -> ExportedAttempt:
    end = training.end
    if end == ReasonCode.STOPPED_OUTSIDE and not is_last:
        end = ReasonCode.PREEMPTION.value
    parts = tuple(timedelta(seconds=seconds) for seconds in training.intervals_s)
    is_over = training.ended_at is not None
    return ExportedAttempt(
        started_at=training.launched_at or training.training_since or training.created_at,
        training_since=training.training_since,
        ended_at=training.ended_at,
        end=end,
        lost=timedelta(),
        warm_start=training.name in reusing,
        trained=sum(parts, timedelta()) if is_over else None,
        interruptions=max(len(parts) - is_over, 0) if training.is_spot else 0,
        intervals=parts,
    )


def _submitted(entry_id: str | None) -> datetime | None:
    """Return when a trainmaster's job was submitted, from its id, a ULID; None for other ids."""
    text = (entry_id or "")[:_ULID_TIME_CHARACTERS].upper()
    if len(text) < _ULID_TIME_CHARACTERS or not set(text) <= set(_CROCKFORD):
        return None
    milliseconds = 0
    for character in text:
        milliseconds = milliseconds * len(_CROCKFORD) + _CROCKFORD.index(character)
    instant = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds % 2**46)
    return instant if instant >= _EARLIEST else None


def not_said(training_jobs: Sequence[TrainingJob], *, team_tag: str | None) -> Iterator[str]:
    """Yield sentences on what SageMaker does not tell of these."""
    total = len(training_jobs)
    for concerns, sentence in _SENTENCES:
        count = sum(concerns(training, team_tag) for training in training_jobs)
        if count:
            yield sentence.format(
                count=count_of(count, "training job"),
                part=part_of(count, total, "training job"),
                tag=team_tag,
            )
    yield (
        "Each job is taken as submitted when its training job was created: what its user waited before, for "
        "others to end, SageMaker does not say."
    )


_Concerns = Callable[[TrainingJob, str | None], bool]
_SENTENCES: tuple[tuple[_Concerns, str], ...] = (
    (lambda training, _: not training.instances, "{count} had no instances of their own: left out."),
    (
        lambda training, _: training.tags is None,
        "The tags of {part} could not be read: sagemaker:ListTags is missing.",
    ),
    (
        lambda training, tag: tag is not None and tag not in (training.tags or {}),
        "The team of {part} is not known, as they have no tag {tag}: their execution role stands for it.",
    ),
    (lambda _, tag: tag is None, "The team of {part} is not known: their execution role stands for it."),
    (
        lambda training, _: TAG_USER_PROFILE not in (training.tags or {}),
        "Who submitted {part} SageMaker does not say: their execution role stands for it.",
    ),
    (lambda training, _: TAG_PRIORITY not in (training.tags or {}), "{part} had no priority: each has 0."),
    (
        lambda training, _: TAG_JOB in (training.tags or {}),
        "{part} were made by a trainmaster: those of one job are its attempts; what stops lost is not known.",
    ),
    (
        lambda training, _: training.saves_checkpoints,
        "{part} had a CheckpointConfig: that they save to it and resume from it is assumed.",
    ),
)
