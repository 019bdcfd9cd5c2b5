"""The job of ``--ask``: a CreateTrainingJob request, or just what a queue needs to know of one."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from trainmaster.core.jobs.instances import CapacityType
from trainmaster.core.jobs.widths import BadWidthsError, Widths, read_widths
from trainmaster.core.request.options import MAX_PRIORITY, PlanUse
from trainmaster.core.request.request import read_request
from trainmaster.core.request.validation import check_request

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.simulate.engine.past_jobs import (
    AskedCapacity,
    History,
    PastJob,
    PastWidths,
    usual_speeds,
)

DEFAULT_RUNTIME = timedelta(days=1)
"""SageMaker's default of MaxRuntimeInSeconds. Source: API reference, StoppingCondition."""
_EXAMPLE = (
    'Give e.g. {"instance_type": "ml.p5.48xlarge", "instance_count": 2, "priority": 100, "team": "vision"}.'
)
_IS_REQUEST = ("TrainingJobName", "ResourceConfig", "AlgorithmSpecification")
_CAPACITY_TYPES = [capacity_type.value for capacity_type in CapacityType]
_PLAN_USES = [use.value for use in PlanUse]


def asked_job(document: Mapping[str, Any], history: History, *, source: str) -> PastJob:
    """Return the job of the document, submitted at no instant in particular.

    Args:
        document: From JSON.
        history: Whose team the job is of when it names none: the one with the most jobs.
        source: Where the document comes from, for messages.

    Raises:
        InvalidArgumentError: With every mistake in it.
    """
    team = _busiest_team(history)
    if any(key in document for key in _IS_REQUEST):
        return _from_request(document, history, team, source)
    problems = list(_problems(document)) or list(_contradictions(document))
    if problems:
        raise InvalidArgumentError(f"{source}: {'; '.join(problems)}.", hint=_EXAMPLE)
    runtime = document.get("max_runtime_seconds")
    saves = document.get("saves_checkpoints", True)
    return PastJob(
        name=str(document.get("name", "asked")),
        team=str(document.get("team", team)),
        submitted_by="",
        submitted_at=history.begins,
        pool=document.get("pool"),
        instances={document["instance_type"]: document.get("instance_count", 1)},
        capacity_type=_capacity_of(document),
        priority=document.get("priority", 0),
        max_runtime=DEFAULT_RUNTIME if runtime is None else timedelta(seconds=runtime),
        trains_for=DEFAULT_RUNTIME if runtime is None else timedelta(seconds=runtime),
        end="completed",
        saves_every=timedelta(hours=1) if saves else None,
        elastic=_elastic(read_widths(document["elastic"]) if "elastic" in document else None),
        avoids_plans=document.get("plan") == PlanUse.NEVER.value,
    )


def _capacity_of(document: Mapping[str, Any]) -> AskedCapacity:
    if document.get("plan") == PlanUse.ONLY.value:
        return "plan"
    capacity_type: AskedCapacity = document.get("capacity_type", "on-demand")
    return capacity_type


def _elastic(widths: Widths | None) -> PastWidths | None:
    """Return the widths with the speeds that the planner assumes, as the job has not shown its own."""
    return None if widths is None else PastWidths(widths=widths, speeds=usual_speeds(widths))


def _from_request(document: Mapping[str, Any], history: History, team: str, source: str) -> PastJob:
    mistakes = check_request(dict(document))
    if mistakes:
        text = "; ".join(f"{mistake.field} {mistake.message}: {mistake.hint}" for mistake in mistakes)
        raise InvalidArgumentError(
            f"{source}: {text}.", hint="It has to be valid for boto3's create_training_job."
        )
    ask = read_request(document)
    vector = ask.shapes[0].vector
    return PastJob(
        name=ask.name,
        team=ask.options.team or team,
        submitted_by="",
        submitted_at=history.begins,
        pool=None,
        instances={capacity.instance_type: count for capacity, count in vector.items()},
        capacity_type=ask.shapes[0].capacity_type.value,
        priority=ask.options.priority,
        max_runtime=ask.max_runtime,
        trains_for=ask.max_runtime,
        end="completed",
        saves_every=timedelta(hours=1) if ask.checkpoint_uri else None,
        preemptible=ask.options.preemptible,
        elastic=_elastic(ask.options.elastic),
        avoids_plans=ask.options.plan is PlanUse.NEVER,
    )


def _problems(document: Mapping[str, Any]) -> Iterator[str]:
    if "instance_type" not in document:
        yield "instance_type is missing"
    for key, value in document.items():
        check = _FIELDS.get(key)
        if check is None:
            yield f"{key!r} is not a field of it; there are {', '.join(_FIELDS)}"
        elif (problem := check(value)) is not None:
            yield f"{key} {problem}"


def _contradictions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield what valid fields say against each other, as a submission with these tags would be refused."""
    is_spot, plan = document.get("capacity_type") == CapacityType.SPOT.value, document.get("plan")
    if "elastic" in document:
        largest, count = read_widths(document["elastic"]).largest, document.get("instance_count", 1)
        if count != largest:
            hint = f"write instance_count {largest}"
            yield f"instance_count is {count}, but elastic goes up to {largest}; {hint}"
        if is_spot:
            yield "elastic is not for spot; write capacity_type on-demand, or leave elastic out"
    if is_spot and plan == PlanUse.ONLY.value:
        yield "plan only is not for spot; leave plan out"


def _text(value: object) -> str | None:
    return None if isinstance(value, str) and value.strip() else "is not a text"


def _whole(least: int, most: int) -> Callable[[object], str | None]:
    def check(value: object) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        return None if fits else f"is not a whole number from {least} to {most}"

    return check


def _capacity_type(value: object) -> str | None:
    return None if value in _CAPACITY_TYPES else f"is not {' or '.join(_CAPACITY_TYPES)}"


def _widths(value: object) -> str | None:
    if not isinstance(value, str):
        return "is not a text; write e.g. 2-8, 2-8:2 or 2 4 8 in quotes"
    try:
        read_widths(value)
    except BadWidthsError as error:
        return f"{error.message}: {error.hint}"
    return None


def _plan_use(value: object) -> str | None:
    return None if value in _PLAN_USES else f"is not {', '.join(_PLAN_USES[:-1])} or {_PLAN_USES[-1]}"


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "is neither true nor false"


_FIELDS: Mapping[str, Callable[[object], str | None]] = {
    "name": _text,
    "instance_type": _text,
    "instance_count": _whole(1, 10_000),
    "capacity_type": _capacity_type,
    "priority": _whole(0, MAX_PRIORITY),
    "team": _text,
    "pool": _text,
    "max_runtime_seconds": _whole(1, 28 * 86_400),
    "saves_checkpoints": _flag,
    "elastic": _widths,
    "plan": _plan_use,
}


def _busiest_team(history: History) -> str:
    jobs: dict[str, int] = {}
    for job in history.jobs:
        jobs[job.team] = jobs.get(job.team, 0) + 1
    return max(jobs, key=lambda team: (jobs[team], team), default="default")
