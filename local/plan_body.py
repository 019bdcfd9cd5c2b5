"""The bodies of the control calls that buy a training plan, and change it afterwards."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from local.control_body import BadFieldError, Body
from local.sagemaker.plan_offerings import USD_PER_INSTANCE_HOUR
from local.sagemaker.training_plans import MOST_WINDOWS, Window

_NAME = re.compile("[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}")
"""Source: SageMaker service model, TrainingPlanName."""


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
