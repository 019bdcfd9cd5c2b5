"""The request as the queue reads it: whole numbers as such, and the defaults that SageMaker itself has."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from trainmaster.core.request.request_shapes import ROOT, SHAPES

DEFAULT_RUNTIME = timedelta(days=1)
"""MaxRuntimeInSeconds of a job that sets none. Source: SageMaker API reference, StoppingCondition."""


def in_whole_numbers(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with 86400 for 86400.0, wherever the service model has a whole number.

    Spreadsheets, YAML tools and pandas write floats. Other numbers stay, for the checks to name.
    """
    read: dict[str, Any] = _read(ROOT, body)
    return read


def _read(name: str, value: Any) -> Any:  # noqa: ANN401  any JSON value
    shape = SHAPES[name]
    match shape["type"], value:
        case "structure", Mapping():
            members = shape["members"]
            return {
                key: _read(members[key], member) if key in members else member
                for key, member in value.items()
            }
        case "list", list():
            return [_read(shape["member"], member) for member in value]
        case "integer" | "long", float() if value.is_integer():
            return int(value)
        case _:
            return value


def has_runtime(body: Mapping[str, Any]) -> bool:
    return "MaxRuntimeInSeconds" in body.get("StoppingCondition", {})


def with_runtime(body: Mapping[str, Any], longest: timedelta | None) -> dict[str, Any]:
    """Return the request with a MaxRuntimeInSeconds: its own, else SageMaker's default.

    Args:
        body: A valid request.
        longest: The most that the rules allow, if they bound it, as a default must not break them.
    """
    runtime = DEFAULT_RUNTIME if longest is None else min(DEFAULT_RUNTIME, longest)
    default = {"MaxRuntimeInSeconds": int(runtime.total_seconds())}
    return {**body, "StoppingCondition": default | body.get("StoppingCondition", {})}
