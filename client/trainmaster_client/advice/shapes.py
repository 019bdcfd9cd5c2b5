"""Finds the shapes to compare, written as in ``trainmaster:alternatives``: asked for, or proposed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from trainmaster.core.errors import BadOptionError
from trainmaster.core.jobs.instances import Capacity, CapacityType
from trainmaster.core.jobs.widths import BadWidthsError, Widths, read_widths
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.memory.program_shapes import Strategy
from trainmaster.core.memory.training_runs import Run
from trainmaster.core.request.options import ALTERNATIVES, CHEAPEST, ELASTIC, READERS, Alternative

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.manifests.network import efa_interfaces

Request = Mapping[str, Any]
"""A CreateTrainingJob request; nobody has checked it yet."""

AS_REQUESTED = "as requested"
"""Stands for what one shape cannot say: instance groups, instance preferences."""

_NAME = "TrainingJobName"

_SUFFIX = "-advised"

_LONGEST_NAME = 63
"""SageMaker API reference, CreateTrainingJob, TrainingJobName."""

MOST_PROPOSED = 6
"""Each is tried on the API, which may think for seconds."""

_CAPACITY_KEYS = {CapacityType.ON_DEMAND: "capacity", CapacityType.SPOT: "spot_capacity"}

_HYBRID = frozenset({Strategy.HYBRID_SHARD, Strategy.HYBRID_SHARD_ZERO2, Strategy.NO_SHARD})


class Source(StrEnum):
    REQUEST = "request"
    TAG = "tag"
    OPTION = "option"
    PROPOSED = "proposed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    source: Source
    shape: Alternative | None
    """The shape; None if the request has no single shape and is tried as it is."""

    def __str__(self) -> str:
        return AS_REQUESTED if self.shape is None else shape_text(self.shape)

    @property
    def is_spot(self) -> bool:
        return self.shape is not None and self.shape.capacity.capacity_type is CapacityType.SPOT


def shape_text(shape: Alternative) -> str:
    """Write a shape as the tag has it: ``ml.g5.xlarge=4:spot@subnet-0ab1``."""
    spot = ":spot" if shape.capacity.capacity_type is CapacityType.SPOT else ""
    subnet = f"@{shape.subnet}" if shape.subnet else ""
    return f"{shape.capacity.instance_type}={shape.count}{spot}{subnet}"


def read_shapes(text: str, *, where: str) -> tuple[Alternative, ...]:
    """Read shapes by the API's own rule.

    Raises InvalidArgumentError, which names ``where`` they were written.
    """
    try:
        shapes: tuple[Alternative, ...] = READERS[ALTERNATIVES][1](text)
    except BadOptionError as error:
        raise InvalidArgumentError(f"{where}: {text!r} {error.message}:", hint=f"{error.hint}.") from error
    return shapes


def asked_for(request: Request) -> tuple[Candidate, ...]:
    """Return the shapes the request asks for; its ResourceConfig does not count beside the tag."""
    tag = alternatives_tag(request)
    if tag is not None:
        shapes = read_shapes(tag, where=f"the tag {ALTERNATIVES}")
        return tuple(Candidate(source=Source.TAG, shape=shape) for shape in shapes)
    own = _own_shape(request)
    if own is not None and (widths := _widths(request)) is not None:
        counts = reversed(widths.counts)
        return tuple(Candidate(source=Source.TAG, shape=replace(own, count=count)) for count in counts)
    return (Candidate(source=Source.REQUEST, shape=own),)


def _widths(request: Request) -> Widths | None:
    """Return the widths of an elastic request. Raises InvalidArgumentError for a tag that names none."""
    text = next((tag.get("Value") for tag in _tags(request) if tag.get("Key") == ELASTIC), None)
    if text is None:
        return None
    try:
        return read_widths(str(text))
    except BadWidthsError as error:
        message = f"the tag {ELASTIC}: {text!r} {error.message}:"
        raise InvalidArgumentError(message, hint=f"{error.hint}.") from error


def alternatives_tag(request: Request) -> str | None:
    values = [tag.get("Value") for tag in _tags(request) if tag.get("Key") == ALTERNATIVES]
    return str(values[0]) if values and values[0] != CHEAPEST else None


def with_shapes(request: Request, shapes: str | None) -> dict[str, Any]:
    """Return the request with this tag in place of its own; None leaves it without either.

    An elastic request becomes one that runs in just these shapes.
    """
    given = request.get("Tags") or []
    if not isinstance(given, list):  # the API says what is wrong with it
        return dict(request)
    tags = [tag for tag in given if not _names_shapes(tag) or (shapes is None and _is_elastic(tag))]
    tags += [] if shapes is None else [{"Key": ALTERNATIVES, "Value": shapes}]
    rest = {key: value for key, value in request.items() if key != "Tags"}
    return {**rest, "Tags": tags} if tags else rest


def subnets_of(request: Request) -> tuple[str, ...]:
    network = request.get("VpcConfig")
    subnets = network.get("Subnets") if isinstance(network, Mapping) else None
    return tuple(subnet for subnet in subnets if isinstance(subnet, str)) if isinstance(subnets, list) else ()


def renamed(request: Request) -> dict[str, Any]:
    """Rename the job: one of its name may wait already, and a dry run of another shape would conflict."""
    name = request.get(_NAME)
    if not isinstance(name, str) or not name:
        return dict(request)
    return {**request, _NAME: name[: _LONGEST_NAME - len(_SUFFIX)].rstrip("-") + _SUFFIX}


def longest_hours(request: Request) -> float | None:
    """Return MaxRuntimeInSeconds in hours; None if the request has none."""
    stopping = request.get("StoppingCondition")
    seconds = stopping.get("MaxRuntimeInSeconds") if isinstance(stopping, Mapping) else None
    return seconds / 3600 if isinstance(seconds, int) and seconds > 0 else None


def is_elastic(request: Request) -> bool:
    return any(_is_elastic(tag) for tag in _tags(request))


def answers_by_width(answer: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the dry run of an elastic request as an answer about each of its widths, by width.

    Other jobs are stopped for its least width only. An earlier release of the API names no widths.
    """
    widths = answer.get("widths") if answer.get("valid") else None
    if not isinstance(widths, list) or not widths:
        return {}
    least = min(entry["width"] for entry in widths)
    rest = {**answer, "widths": None}
    return {
        entry["width"]: {**rest, **entry} | ({} if entry["width"] == least else {"would_preempt": []})
        for entry in widths
    }


def has_checkpoints(request: Request) -> bool:
    return isinstance(request.get("CheckpointConfig"), Mapping)


def _own_shape(request: Request) -> Alternative | None:
    resources = request.get("ResourceConfig")
    if not isinstance(resources, Mapping):
        return None
    instance_type, count = resources.get("InstanceType"), resources.get("InstanceCount")
    if not isinstance(instance_type, str) or not isinstance(count, int) or count < 1:
        return None
    is_spot = request.get("EnableManagedSpotTraining") is True
    capacity_type = CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND
    return Alternative(capacity=Capacity(instance_type, capacity_type), count=count, subnet=None)


def _tags(request: Request) -> Iterator[Mapping[str, Any]]:
    tags = request.get("Tags")
    yield from (tag for tag in tags if isinstance(tag, Mapping)) if isinstance(tags, list) else ()


def _names_shapes(tag: object) -> bool:
    return isinstance(tag, Mapping) and tag.get("Key") in {ALTERNATIVES, ELASTIC}


def _is_elastic(tag: object) -> bool:
    return isinstance(tag, Mapping) and tag.get("Key") == ELASTIC


def proposals(like: Alternative, pools: Iterable[Mapping[str, Any]]) -> list[Alternative]:
    """Propose shapes that the empty pools could hold, fewer hosts first; ``pools`` as in ``GET /pools``."""
    shapes = (shape for pool in pools for shape in _in_pool(like, pool))
    return sorted(shapes, key=lambda shape: (shape.count, shape.capacity))[:MOST_PROPOSED]


def _in_pool(like: Alternative, pool: Mapping[str, Any]) -> Iterator[Alternative]:
    for capacity_type, key in _CAPACITY_KEYS.items():
        for instance_type, room in (pool.get(key) or {}).items():
            count = _as_many(like, instance_type)
            if count is not None and count <= room:
                capacity = Capacity(instance_type, capacity_type)
                yield Alternative(capacity=capacity, count=count, subnet=None)


def _as_many(like: Alternative, instance_type: str) -> int | None:
    """Return how many instances have just the accelerators of ``like``; None if no number has.

    Without known accelerators only its own type will do.
    """
    if instance_type == like.capacity.instance_type:
        return like.count
    own, other = BY_TYPE.get(like.capacity.instance_type), BY_TYPE.get(instance_type)
    if own is None or other is None or (own.kind, own.memory_mib) != (other.kind, other.memory_mib):
        return None
    count, rest = divmod(own.count * like.count, other.count)
    return count if count and not rest else None


def network_note(shape: Alternative, run: Run | None) -> str:
    """Say in one sentence what the hosts' network means; ``run`` is None if it is not known what trains."""
    if shape.count == 1:
        return "one host: nothing goes over a network"
    interfaces = efa_interfaces(shape.capacity.instance_type)
    if interfaces:
        return f"{shape.count} hosts with EFA, if the image has it"
    between = "without EFA" if interfaces == 0 else "with or without EFA, that is not known here"
    return f"{shape.count} hosts {between}{_slow(shape, run)}"


def _slow(shape: Alternative, run: Run | None) -> str:
    if run is None:
        return ": each step waits for a slower network"
    accelerators = BY_TYPE.get(shape.capacity.instance_type)
    several = accelerators is not None and accelerators.count > 1
    if several and run.strategy not in _HYBRID:
        return ": strategy hybrid_shard keeps the weights' traffic inside each host"
    return ": more gradient_accumulation_steps and reduce_dtype bf16 use the slow network less"
