"""Instances that a job asks for and a pool counts: by type, and on-demand, spot and training plans apart."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self


class CapacityType(StrEnum):
    ON_DEMAND = "on-demand"
    SPOT = "spot"
    PLAN = "plan"
    """Instances of SageMaker training plans, which are paid for in advance."""


class Capacity(str):
    """A kind of instance that a pool counts: one type, on-demand, managed spot and each training plan apart.

    It is a text (``ml.g5.xlarge``, ``ml.g5.xlarge:spot``, ``ml.p5.48xlarge:plan/spring``), because it is the
    key of nearly every count of a pass and texts remember their hash. ``ml.p5.48xlarge:plan`` is only asked
    for: instances of any plan of the pool.
    """

    __slots__ = ()

    def __new__(cls, instance_type: str, capacity_type: CapacityType = CapacityType.ON_DEMAND) -> Self:
        return super().__new__(cls, instance_type + _SUFFIX[capacity_type])

    @classmethod
    def of_plan(cls, instance_type: str, plan: str) -> Self:
        """Return the capacity of one training plan, by the name at the end of its ARN."""
        return super().__new__(cls, f"{instance_type}{_PLAN}/{plan}")

    @property
    def instance_type(self) -> str:
        kind, _, word = self.partition(":")
        return kind if is_known_word(word) else self  # what a later release counts is no type of ours

    @property
    def capacity_type(self) -> CapacityType:
        if self.is_spot:
            return CapacityType.SPOT
        return CapacityType.PLAN if self.is_plan else CapacityType.ON_DEMAND

    @property
    def is_spot(self) -> bool:
        return self.endswith(_SPOT)

    @property
    def is_plan(self) -> bool:
        return _PLAN in self and self.partition(":")[2].partition("/")[0] == CapacityType.PLAN

    @property
    def is_on_demand(self) -> bool:
        return ":" not in self  # what a later release counts apart is not, either

    @property
    def plan(self) -> str | None:
        """Name of the training plan that it is of; None: it is of none, or of any."""
        return self.partition("/")[2] or None if self.is_plan else None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str()`` wrote."""
        return super().__new__(cls, text)


_SPOT = ":spot"
_PLAN = ":plan"
_SUFFIX = {CapacityType.ON_DEMAND: "", CapacityType.SPOT: _SPOT, CapacityType.PLAN: _PLAN}


def plan_name(arn: str) -> str:
    """Return the name at the end of a plan's ARN, which no other plan of its account and region has."""
    return arn.rpartition("/")[2]


def is_known_word(word: str) -> bool:
    """Tell whether a capacity may have this after its colon; ``""`` where it has no colon."""
    return word in {"", CapacityType.SPOT.value} or word.partition("/")[0] == CapacityType.PLAN


Vector = Mapping[Capacity, int]
"""Number of instances asked for, used or free."""


def vector_text(vector: Vector) -> str:
    """Render a vector in one line, always in one order: ``ml.g5.xlarge:spot=2+ml.p5.48xlarge=1``."""
    return "+".join(f"{capacity}={vector[capacity]}" for capacity in sorted(vector))


def parse_vector(text: str) -> dict[Capacity, int]:
    """Read what ``vector_text`` wrote."""
    parts = (part.rpartition("=") for part in text.split("+") if part)
    return {Capacity.parse(capacity): int(count) for capacity, _, count in parts}


def parse_known(text: str) -> dict[Capacity, int]:
    """Read a vector. Raises ValueError for a capacity of a kind that only a later release counts."""
    vector = parse_vector(text)
    unknown = [capacity for capacity in vector if not is_known_word(capacity.partition(":")[2])]
    if unknown:
        raise ValueError(f"{unknown[0]} is a kind of capacity that this version does not know")
    return vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One form a job can run in."""

    vector: Vector
    subnet: str | None = None
    """The one subnet that it is bound to; None: those of the request."""
    warm_key: str | None = None
    """Key of the warm pools that it can reuse; None where SageMaker keeps none."""
    avoids_plans: bool | None = None
    """True if it must not run on a training plan although one would do; None: it may."""

    @property
    def capacity_type(self) -> CapacityType:
        """Capacity type of all its instances: a shape is of one capacity type as a whole."""
        return next(iter(self.vector)).capacity_type

    @property
    def is_on_plan(self) -> bool:
        return next(iter(self.vector)).is_plan

    @property
    def instances(self) -> int:
        return sum(self.vector.values())


def on_demand(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """Return the same instances on demand; those of training plans stay as they are.

    Shapes that are equal then become one, with the warm key if one of them has it.
    """
    by_key: dict[tuple[str, str | None], Shape] = {}
    for shape in shapes:
        vector = {
            capacity if capacity.is_plan else Capacity(capacity.instance_type): count
            for capacity, count in shape.vector.items()
        }
        key = (vector_text(vector), shape.subnet)
        if key not in by_key or by_key[key].warm_key is None:
            by_key[key] = replace(shape, vector=vector)
    return tuple(by_key.values())


class Choice(StrEnum):
    """Choosers among several shapes."""

    FIRST_FIT = "first-fit"
    """The planner takes the first that fits."""
    SAGEMAKER = "sagemaker"
    """SageMaker chooses (InstancePreferences): all shapes that fit are held until it reports which it
    took."""


def asked_for(shapes: Sequence[Shape], choice: Choice) -> Vector:
    """Return the most instances that must be free: the best shape, or all that SageMaker may choose from."""
    if choice is Choice.FIRST_FIT:
        return shapes[0].vector
    return {capacity: count for shape in shapes for capacity, count in shape.vector.items()}


_AVOIDS = "~"


def lane_text(shapes: Sequence[Shape], choice: Choice) -> str:
    """Return a text that is equal for jobs with equal demands.

    It is like ``ml.g5.xlarge=2``, with ``>`` between alternatives, or ``|`` where SageMaker chooses, and
    ``@`` before a subnet and a ``~`` of what avoids training plans.
    """
    between = ">" if choice is Choice.FIRST_FIT else "|"
    return between.join(_lane_part(shape) for shape in shapes)


def _lane_part(shape: Shape) -> str:
    at = f"{shape.subnet or ''}{_AVOIDS if shape.avoids_plans else ''}"
    return f"{vector_text(shape.vector)}@{at}" if at else vector_text(shape.vector)


def fits(wanted: Vector, free: Vector) -> bool:
    for capacity, count in wanted.items():  # noqa: SIM110  half the time of a generator, at each step of a plan
        if free.get(capacity, 0) < count:
            return False
    return True


def total(vectors: Iterable[Vector]) -> dict[Capacity, int]:
    """Sum vectors."""
    counted: dict[Capacity, int] = {}
    for vector in vectors:
        for capacity, count in vector.items():
            counted[capacity] = counted.get(capacity, 0) + count
    return counted
