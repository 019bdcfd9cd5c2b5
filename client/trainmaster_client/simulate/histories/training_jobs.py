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
"""Of what Studio created. Source: SageMaker developer guide, tags that Studio adds."""
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_TIME_CHARACTERS = 10
"""Of a ULID, the first: milliseconds since 1970. Source: github.com/ulid/spec."""
_EARLIEST = datetime(2017, 1, 1, tzinfo=UTC)
"""No training job is older: what says so is not an instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """What is kept of one: no hyperparameters, no environment, no names of data."""

    arn: str
    name: str
    role: str
    """Name of its execution role."""
    created_at: datetime
    launched_at: datetime | None
    """It had its instances."""
    training_since: datetime | None
    ended_at: datetime | None
    """None: it is in progress."""
    end: str | None
    """Reason code; None: it is in progress."""
    intervals_s: tuple[float, ...]
    """Times in Training that are over; interruptions of spot instances are between them."""
    instances: Mapping[str, int]
    """By type; empty where SageMaker chose its own."""
    is_spot: bool
    max_runtime_s: int
    saves_checkpoints: bool
    reused_by: str | None
    """The training job that took over its warm pool."""
    tags: Mapping[str, str] | None
    """None: they could not be read."""

    def as_document(self) -> dict[str, Any]:
        """For JSON."""
        document = asdict(self)
        return {name: one.isoformat() if isinstance(one, datetime) else one for name, one in document.items()}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "TrainingJob":
        """Raises KeyError, TypeError or ValueError."""
        instants = {"created_at", "launched_at", "training_since", "ended_at"}
        values = {
            name: datetime.fromisoformat(one) if name in instants and one is not None else one
            for name, one in document.items()
        }
        return cls(**values | {"intervals_s": tuple(document["intervals_s"])})


def training_job(answer: Mapping[str, Any], tags: Mapping[str, str] | None) -> TrainingJob:
    """Of an answer of DescribeTrainingJob."""
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
            (one.until - one.since).total_seconds() for one in seen.training_intervals if one.until
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
    found: defaultdict[str, int] = defaultdict(int)
    for part in parts:
        if part.get("InstanceType") and part.get("InstanceCount"):
            found[part["InstanceType"]] += part["InstanceCount"]
    return dict(found)


def exported_jobs(found: Iterable[TrainingJob], *, team_tag: str | None) -> Iterator[ExportedJob]:
    """Training jobs that one trainmaster made for one job are its attempts; each other one is a job."""
    of_job: defaultdict[str, list[TrainingJob]] = defaultdict(list)
    jobs = list(found)
    for one in jobs:
        if one.instances:
            of_job[(one.tags or {}).get(TAG_JOB) or one.arn].append(one)
    reusing = {one.reused_by for one in jobs if one.reused_by}
    for attempts in of_job.values():
        yield _job(sorted(attempts, key=_attempt_order), reusing, team_tag=team_tag)


def _attempt_order(one: TrainingJob) -> tuple[int, datetime]:
    number = (one.tags or {}).get(TAG_ATTEMPT, "")
    return (int(number) if number.isdecimal() else 0, one.created_at)


def _job(tried: Sequence[TrainingJob], reusing: set[str], *, team_tag: str | None) -> ExportedJob:
    first, last = tried[0], tried[-1]
    tags = first.tags or {}
    entry_id = tags.get(TAG_JOB)
    priority = tags.get(TAG_PRIORITY, "")
    ran = [one for one in tried if one.launched_at is not None or one.training_since is not None]
    return ExportedJob(
        name=first.name,
        team=(tags.get(team_tag) if team_tag else None) or first.role,
        submitted_by=tags.get(TAG_USER_PROFILE, "").rpartition("/")[2] or first.role,
        pool=None,
        instances=first.instances,
        capacity_type="spot" if first.is_spot else "on-demand",
        priority=min(int(priority), MAX_PRIORITY) if priority.isdecimal() else 0,
        submitted_at=_submitted(entry_id) or first.created_at,
        max_runtime=timedelta(seconds=max(one.max_runtime_s for one in tried)),
        saves_checkpoints=first.saves_checkpoints,
        attempts=tuple(_attempt(one, reusing, is_last=one is last) for one in ran),
        end=last.end,
        ended_at=last.ended_at,
        entry_id=entry_id,
        preemptible=tags.get(TAG_PREEMPTIBLE) != "false",
    )


def _attempt(one: TrainingJob, reusing: set[str], *, is_last: bool) -> ExportedAttempt:
    end = one.end
    if end == ReasonCode.STOPPED_OUTSIDE and not is_last:
        end = ReasonCode.PREEMPTION.value
    parts = tuple(timedelta(seconds=each) for each in one.intervals_s)
    is_over = one.ended_at is not None
    return ExportedAttempt(
        started_at=one.launched_at or one.training_since or one.created_at,
        training_since=one.training_since,
        ended_at=one.ended_at,
        end=end,
        lost=timedelta(),
        warm_start=one.name in reusing,
        trained=sum(parts, timedelta()) if is_over else None,
        interruptions=max(len(parts) - is_over, 0) if one.is_spot else 0,
        intervals=parts,
    )


def _submitted(entry_id: str | None) -> datetime | None:
    """When a job of a trainmaster was submitted: its id, a ULID, says so."""
    text = (entry_id or "")[:_ULID_TIME_CHARACTERS].upper()
    if len(text) < _ULID_TIME_CHARACTERS or not set(text) <= set(_CROCKFORD):
        return None
    milliseconds = 0
    for character in text:
        milliseconds = milliseconds * len(_CROCKFORD) + _CROCKFORD.index(character)
    found = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds % 2**46)
    return found if found >= _EARLIEST else None


def not_said(found: Sequence[TrainingJob], *, team_tag: str | None) -> Iterator[str]:
    """Sentences on what SageMaker does not say of these."""
    total = len(found)
    for concerns, sentence in _SENTENCES:
        count = sum(concerns(one, team_tag) for one in found)
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
    (lambda one, _: not one.instances, "{count} had no instances of their own: left out."),
    (lambda one, _: one.tags is None, "The tags of {part} could not be read: sagemaker:ListTags is missing."),
    (
        lambda one, tag: tag is not None and tag not in (one.tags or {}),
        "The team of {part} is not known, as they have no tag {tag}: their execution role stands for it.",
    ),
    (lambda _, tag: tag is None, "The team of {part} is not known: their execution role stands for it."),
    (
        lambda one, _: TAG_USER_PROFILE not in (one.tags or {}),
        "Who submitted {part} SageMaker does not say: their execution role stands for it.",
    ),
    (lambda one, _: TAG_PRIORITY not in (one.tags or {}), "{part} had no priority: each has 0."),
    (
        lambda one, _: TAG_JOB in (one.tags or {}),
        "{part} were made by a trainmaster: those of one job are its attempts; what stops lost is not known.",
    ),
    (
        lambda one, _: one.saves_checkpoints,
        "{part} had a CheckpointConfig: that they save to it and resume from it is assumed.",
    ),
)
