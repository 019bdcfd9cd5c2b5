"""Valid objects with sensible defaults; a test sets only what it is about."""

import typing
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from trainmaster.adapters.dynamodb.stored_names import PARTS, stored_name
from trainmaster.core.jobs import run_time
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Capacity, CapacityType, Shape, Vector
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.lifecycle import steps
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import Order, PoolPolicy, Preemption

T = TypeVar("T")
NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
A = "ml.a.xlarge"
B = "ml.b.xlarge"
ENTRY = "01JBN8Q0000000000000000000"


def of(count: int = 1, instance_type: str = A, *, spot: bool = False) -> Vector:
    kind = CapacityType.SPOT if spot else CapacityType.ON_DEMAND
    return {Capacity(instance_type, kind): count}


def build(cls: type[T], /, **flat: Any) -> T:
    """An object with the fields of its parts among its own, by their names or as the table calls them."""
    return cls(**_grouped(cls, flat, before=None))


def changed(one: T, /, **flat: Any) -> T:
    """``replace``, with the fields of parts among its own."""
    return replace(one, **_grouped(type(one), flat, before=one))  # type: ignore[type-var]


def _grouped(cls: type, flat: dict[str, Any], *, before: Any) -> dict[str, Any]:
    grouped = dict(flat)
    for field, hint in typing.get_type_hints(cls).items():
        part = next((one for one in (hint, *typing.get_args(hint)) if one in PARTS), None)
        if part is None:
            if stored_name(cls, field) in grouped:
                grouped[field] = grouped.pop(stored_name(cls, field))
            continue
        names = {stored_name(part, one.name): one.name for one in fields(part)}
        of_part = {names[name]: grouped.pop(name) for name in names if name in grouped}
        known = None if before is None else getattr(before, field)
        mandatory = [one.name for one in fields(part) if MISSING is one.default is one.default_factory]
        if known is not None and of_part:
            grouped[field] = replace(known, **of_part)
        elif field not in grouped and all(of_part.get(name) is not None for name in mandatory):
            grouped[field] = part(**of_part)
        else:
            assert not any(of_part.values()), (part, of_part)
    return grouped


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def pool(capacity: int = 2, *, preemption: Preemption | None = None, **types: int) -> PoolPolicy:
    """One pool of type A, and of B when named."""
    counts = {A: capacity} | ({B: types["b"]} if "b" in types else {})
    return PoolPolicy(name="main", capacity=counts, order=Order(), preemption=preemption or Preemption())


def score_at(priority: int, minutes_ago: float, rules: PoolPolicy | None = None) -> int:
    entered = NOON - minutes(minutes_ago)
    return int(entered.timestamp() * 1000) - (rules or pool()).boost_ms(priority)


def waiting(name: str, *, priority: int = 0, minutes_ago: float = 0, n: int = 1, **fields: Any) -> WaitingJob:
    values: dict[str, Any] = {
        "ver": 1,
        "team": "default",
        "state": JobState.PENDING,
        "shapes": (Shape(vector=fields.pop("vector", of(n))),),
        "runs_at_most": timedelta(hours=1),
        "score": score_at(priority, minutes_ago),
        "submitted_at": NOON - minutes(minutes_ago),
    }
    return WaitingJob(name=name, priority=priority, **values | fields)


def running(
    name: str, *, priority: int = 0, minutes_ago: float = 30, n: int = 1, **fields: Any
) -> RunningJob:
    started = NOON - minutes(minutes_ago)
    values: dict[str, Any] = {
        "ver": 1,
        "team": "default",
        "state": JobState.RUNNING,
        "vector": of(n),
        "score": score_at(priority, minutes_ago),
        "claimed_at": started,
        "lease_until": started + minutes(5),
        "training_job_name": name,
        "known_to_sagemaker": True,
        "training_since": started,
        "ends_by": None,
        "stop_sent": False,
        "preemptible": True,
        "has_checkpoint": True,
        "preemptions": 0,
    }
    return build(RunningJob, name=name, priority=priority, **values | fields)


def snapshot(*jobs: WaitingJob | RunningJob, **fields: Any) -> Snapshot:
    """A pool in which ``used`` is what its running jobs hold."""
    live = tuple(job for job in jobs if isinstance(job, RunningJob))
    used: dict[Capacity, int] = {}
    for job in live:
        for capacity, count in job.vector.items():
            used[capacity] = used.get(capacity, 0) + count
    values: dict[str, Any] = {
        "used": used,
        "waiting": tuple(job for job in jobs if isinstance(job, WaitingJob)),
        "running": live,
    }
    return Snapshot(**values | fields)


def job(name: str = "train-1", *, state: JobState = JobState.PENDING, **fields: Any) -> Job:
    """A job as just submitted; ``spec`` fields may be given too."""
    spec: dict[str, Any] = {
        "name": name,
        "entry_id": ENTRY,
        "team": "default",
        "pool": "main",
        "submitted_by": "arn:aws:iam::111122223333:user/ada",
        "submitted_at": NOON,
        "shapes": (Shape(vector=of()),),
        "preemptible": True,
        "checkpoint_uri": "s3://bucket/checkpoints",
        "max_runtime": timedelta(hours=1),
        "max_wait": None,
        "body_hash": "0" * 64,
    }
    also = {"choice", "keep_alive", "predicted", "halves_batch", "learned_in", "likely", "set_by_pool"}
    also |= {"widths", "work_kind", "measured", "hold_open"}
    if "widths" in fields:
        counts = reversed(fields["widths"].counts)
        spec["shapes"] = tuple(Shape(vector=of(count)) for count in counts)
    if "vector" in fields:
        spec["shapes"] = (Shape(vector=fields.pop("vector")),)
    if "has_checkpoint" in fields and not fields.pop("has_checkpoint"):
        spec["checkpoint_uri"] = None
    ours = {key: fields.pop(key) for key in list(fields) if key in spec or key in also}
    values: dict[str, Any] = {"priority": 0, "score": int(NOON.timestamp() * 1000)}
    return build(Job, spec=JobSpec(**spec | ours), state=state, **values | fields)


def attempt(name: str = "train-1", **fields: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": 0,
        "training_job_name": name,
        "shape": Shape(vector=of()),
        "max_runtime": timedelta(hours=1),
        "claimed_at": NOON,
        "lease_until": NOON + minutes(5),
        "training_job_arn": f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}",
    }
    return build(Attempt, **values | fields)


def live_job(name: str = "train-1", *, state: JobState = JobState.RUNNING, **fields: Any) -> Job:
    live = fields.pop("live", None) or attempt(name)
    return job(name, state=state, live=live, **{"started_at": NOON} | fields)


def seen(
    name: str = "train-1", *, status: str = "InProgress", secondary: str = "Training", **fields: Any
) -> Observation:
    return Observation(
        training_job_name=name,
        training_job_arn=f"arn:aws:sagemaker:us-east-1:111122223333:training-job/{name}",
        status=status,
        secondary_status=secondary,
        **fields,
    )


def claimed(one: Job, name: str | None = None, *, now: datetime = NOON, **fields: Any) -> Job:
    """The job with its next attempt claimed."""
    values: dict[str, Any] = {
        "number": one.attempt,
        "training_job_arn": None,
        "shape": one.spec.shapes[0],
        "max_runtime": run_time.runtime_left(one)[0],
        "max_wait": one.spec.max_wait,
        "claimed_at": now,
        "lease_until": now + steps.LEASE,
    }
    return steps.claim(one, attempt(name or one.name, **values | fields))
