"""A training job of the model's SageMaker, and what may become of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Training:
    """One training job of SageMaker's."""

    name: str
    status: str
    secondary: str
    reason: str | None
    trained: bool
    warm: str | None
    instances: int = 1


def next_of(one: Training, *, keeps: str | None) -> Iterator[tuple[Training, str | None]]:
    """What may become of a training job, and of what budget that takes."""
    if one.status == "InProgress" and not one.trained:
        yield replace(one, secondary="Training", trained=True), None
        yield _ended(one, "Failed", None, reason="CapacityError: none"), "no_capacity"
    elif one.status == "InProgress":
        yield _ended(one, "Completed", keeps), None
        yield from _failures(one)
        yield replace(one, status="Stopping", secondary="Stopping"), "outside_stops"
    elif one.status == "Stopping":
        yield _ended(one, "Stopped", keeps if one.trained else None), None
        if one.trained:
            yield _ended(one, "Completed", keeps), None
            yield from _failures(one)
    elif one.warm == "Available":
        yield replace(one, warm="Terminated"), None


def _failures(one: Training) -> Iterator[tuple[Training, str]]:
    """One that ends the job, and one that it comes back from."""
    yield _ended(one, "Failed", None, reason="AlgorithmError: x"), "failures"
    yield _ended(one, "Failed", None, reason="InternalServerError: x"), "retried"


def may_be_deleted(one: Training) -> bool:
    return one.status not in ("InProgress", "Stopping") and one.warm != "Available"


def _ended(one: Training, status: str, warm: str | None, *, reason: str | None = None) -> Training:
    return replace(one, status=status, secondary=status, reason=reason, warm=warm)
