"""The body of a control call: a JSON object whose fields are checked as they are taken; those of plans."""

import json
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, TypeVar

from local.sagemaker.plan_offerings import USD_PER_INSTANCE_HOUR
from local.sagemaker.training_plans import MOST_WINDOWS, Window

T = TypeVar("T")
_NAME = re.compile("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}")
"""Source: SageMaker service model, TrainingPlanName."""


class BadFieldError(Exception):
    """A field of the body is missing or wrong."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class Body:
    """A JSON object whose fields are taken out one by one; what is left over at the end is an error."""

    def __init__(self, raw: bytes) -> None:
        try:
            document = json.loads(raw)
        except ValueError as error:
            raise BadFieldError("body", "is not JSON") from error
        if not isinstance(document, dict):
            raise BadFieldError("body", "is not a JSON object")
        self._fields: dict[str, Any] = document

    def number(self, name: str, *, default: float | None = None, most: float = math.inf) -> float:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            raise BadFieldError(name, f"must be a number from 0 to {most:g}")
        return value

    def share_or_count(self, name: str) -> float:
        value = self.number(name, default=0)
        if value > 1 and not float(value).is_integer():
            raise BadFieldError(name, "must be a share from 0 to 1, or a whole number of deliveries")
        return value

    def whole(self, name: str, *, default: int | None = None, least: int = 0) -> int:
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadFieldError(name, f"must be a whole number, at least {least}")
        return value

    def text(self, name: str) -> str:
        value = self._take(name, None)
        if not isinstance(value, str) or not value:
            raise BadFieldError(name, "must be a text")
        return value

    def yes(self, name: str) -> bool:
        value = self._take(name, None)
        if value is not True:
            raise BadFieldError(name, "must be true, or left out")
        return value

    def optional(self, name: str, read: Callable[[str], T]) -> T | None:
        """Return what ``read`` makes of a field; None if the field is missing or null."""
        if self._fields.get(name) is None:
            self._fields.pop(name, None)
            return None
        return read(name)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._take(name, None)
        if not isinstance(value, dict):
            raise BadFieldError(name, "must be a JSON object")
        return value

    def parts(self, name: str) -> list["Body"]:
        """Return a list of JSON objects, each as a body of its own; an empty list is an error."""
        value = self._take(name, None)
        if not isinstance(value, list) or not value or not all(isinstance(part, dict) for part in value):
            raise BadFieldError(name, "must be a list of JSON objects, with at least one")
        return [Body(json.dumps(part).encode()) for part in value]

    def instant(self, name: str) -> datetime:
        text = self.text(name)
        with suppress(ValueError):
            if (instant := datetime.fromisoformat(text)).tzinfo is not None:
                return instant.astimezone(UTC)
        raise BadFieldError(name, "must be an instant with a zone, e.g. 2026-12-01T08:00:00Z")

    def end(self) -> None:
        for name in self._fields:
            raise BadFieldError(name, "is not known here")

    def _take(self, name: str, default: object) -> object:
        value = self._fields.pop(name, None)
        if value is None and default is None:
            raise BadFieldError(name, "is missing")
        return default if value is None else value


@dataclass(frozen=True, slots=True, kw_only=True)
class BoughtPlan:
    name: str
    instance_type: str
    instances: int
    windows: tuple[Window, ...]
    fee_usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChange:
    """A None leaves what it names as it is."""

    name: str
    unhealthy: int | None
    extend_to: datetime | None
    failure: str | None


def bought_plan(raw: bytes) -> BoughtPlan:
    """Read the body of POST /plan. Raises BadFieldError."""
    body = Body(raw)
    plan = BoughtPlan(
        name=_name(body),
        instance_type=body.text("instance_type"),
        instances=body.whole("instances", least=1),
        windows=_windows(body.parts("windows")),
        fee_usd=body.number("fee_usd"),
    )
    body.end()
    if plan.instance_type not in USD_PER_INSTANCE_HOUR:
        known = ", ".join(USD_PER_INSTANCE_HOUR)
        raise BadFieldError("instance_type", f"training plans are sold for {known}")
    return plan


def plan_change(raw: bytes) -> PlanChange:
    """Read the body of POST /plan-change. Raises BadFieldError."""
    body = Body(raw)
    change = PlanChange(
        name=_name(body),
        unhealthy=body.optional("unhealthy", body.whole),
        extend_to=body.optional("extend_to", body.instant),
        failure=body.optional("failure", body.text),
    )
    body.end()
    return change


def _name(body: Body) -> str:
    name = body.text("name")
    if not _NAME.fullmatch(name):
        raise BadFieldError("name", "must be 1 to 64 letters, digits and hyphens")
    return name


def _windows(parts: Sequence[Body]) -> tuple[Window, ...]:
    if len(parts) > MOST_WINDOWS:
        raise BadFieldError("windows", f"a training plan has at most {MOST_WINDOWS}")
    windows = []
    for part in parts:
        window = Window(begin=part.instant("from"), end=part.instant("to"))
        part.end()
        if window.begin >= window.end:
            raise BadFieldError(
                "windows", f"{window.end.isoformat()} is not after {window.begin.isoformat()}"
            )
        windows.append(window)
    windows.sort(key=lambda window: window.begin)
    for earlier, later in pairwise(windows):
        if later.begin < earlier.end:
            raise BadFieldError("windows", f"two of them overlap at {later.begin.isoformat()}")
    return tuple(windows)
