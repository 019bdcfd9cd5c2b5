"""Lets moto read the twin's clock, so that a delayed message or an object's age follow a manual clock."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module

_READERS: Mapping[str, Sequence[str]] = {
    "moto.dynamodb.models.table": ("utcnow",),
    "moto.logs.models": ("utcnow",),
    "moto.s3.models": ("unix_time", "utcnow"),
    "moto.sagemaker.models": ("utcnow",),
    "moto.sqs.models": ("unix_time", "unix_time_millis"),
}
"""Modules of moto and the functions by which they ask for the time."""


def install(now: Callable[[], datetime]) -> Callable[[], None]:
    """Make moto ask ``now``; returns what undoes it."""

    def utcnow() -> datetime:
        return now().astimezone(UTC).replace(tzinfo=None)

    def unix_time(instant: datetime | None = None) -> float:
        return (instant or utcnow()).replace(tzinfo=UTC).timestamp()

    def unix_time_millis(instant: datetime | None = None) -> float:
        return unix_time(instant) * 1000

    ours = {"utcnow": utcnow, "unix_time": unix_time, "unix_time_millis": unix_time_millis}
    places = [(import_module(module), name) for module, names in _READERS.items() for name in names]
    before = [getattr(module, name) for module, name in places]
    for module, name in places:
        setattr(module, name, ours[name])

    def undo() -> None:
        for (module, name), function in zip(places, before, strict=True):
            setattr(module, name, function)

    return undo
