"""Reads the values of a world out of a document."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from local.worlds.endings import PendingEnd
from local.worlds.refusals import CAPACITY_TYPES
from local.worlds.world import Latency

Read: TypeAlias = Callable[[Any], object]
"""The value of a document as the world holds it. Raises ``ValueError`` with what it must be."""

OPERATIONS = (
    "CreateTrainingJob",
    "DescribeTrainingJob",
    "ListTrainingJobs",
    "StopTrainingJob",
    "UpdateTrainingJob",
    "DeleteTrainingJob",
    "AddTags",
    "ListTags",
    "DeleteTags",
)
"""Operations about training jobs."""

_MOST_SECONDS = 10 * 365 * 86400
_TYPE = re.compile(r"ml\.[a-z0-9-]+\.[a-z0-9]+")


def number(value: object, *, least: float = 0, most: float = math.inf) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        span = f"from {least:g} to {most:g}" if math.isfinite(most) else f"of at least {least:g}"
        raise ValueError(f"must be a number {span}")
    return value


def whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError("must be a whole number of at least 0")
    return value


def share(value: object) -> float:
    return number(value, most=1)


def seconds(value: object) -> float:
    return number(value, most=_MOST_SECONDS)


def or_none(read: Read) -> Read:
    def optional(value: object) -> object:
        try:
            return None if value is None else read(value)
        except ValueError as error:
            raise ValueError(f"{error}, or null for none") from error

    return optional


def _map(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be a map")  # noqa: TRY004  told to whoever wrote the document
    return value


def _instance_type(name: object) -> str:
    if not isinstance(name, str) or not _TYPE.fullmatch(name):
        raise ValueError(f"{name!r} is no instance type, for example ml.m5.xlarge")
    return name


def quotas(value: object) -> Mapping[str, Mapping[str, int]]:
    return {_instance_type(name): _quota(name, quota) for name, quota in _map(value).items()}


def _quota(name: str, value: object) -> Mapping[str, int]:
    quota = value if isinstance(value, dict) else dict.fromkeys(CAPACITY_TYPES, value)
    try:
        if set(quota) <= set(CAPACITY_TYPES):
            return {kind: whole(instances) for kind, instances in quota.items()}
    except ValueError:
        pass
    known = " and ".join(CAPACITY_TYPES)
    raise ValueError(f"{name} must be a whole number of instances, or a map of {known} to such numbers")


def types(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of instance types")  # noqa: TRY004  as in _map
    return tuple(_instance_type(name) for name in value)


def rates(value: object) -> Mapping[str, float]:
    rates = _map(value)
    for name, rate in rates.items():
        if name not in OPERATIONS:
            raise ValueError(f"{name} is no operation; there are {', '.join(OPERATIONS)}")
        if not _is_rate(rate):
            raise ValueError(f"{name} must be a number of calls a second above 0")
    return rates


def _is_rate(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 0 < value < math.inf


def latency(value: object) -> Latency:
    problem = "must be a map of p50 and p99, seconds, with p50 above 0 and not above p99"
    parts = _map(value)
    if set(parts) != {"p50", "p99"}:
        raise ValueError(problem)
    latency = Latency(p50=seconds(parts["p50"]), p99=seconds(parts["p99"]))
    if not 0 < latency.p50 <= latency.p99 and latency != Latency(p50=0, p99=0):
        raise ValueError(problem)
    return latency


def span(value: object) -> tuple[float, float]:
    problem = "must be a list of two numbers of seconds, the least and the most"
    if not isinstance(value, list | tuple) or len(value) != 2:  # noqa: PLR2004  as it says
        raise ValueError(problem)
    least, most = (seconds(part) for part in value)
    if least > most:
        raise ValueError(problem)
    return least, most


def dialect(value: object) -> PendingEnd:
    if not isinstance(value, str) or value not in set(PendingEnd):
        raise ValueError(f"must be one of {', '.join(PendingEnd)}")
    return PendingEnd(value)
