"""Training plans as a stack knows them: the windows that they had and have, for replays of its policy."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from trainmaster.core.policy.plan_windows import PlanSeen, Window

from trainmaster_client.errors import UnexpectedAnswerError

_NEVER_OPEN = frozenset({"Failed", "Pending"})
"""Statuses of parts of a plan that had no instances. Source: API reference, ReservedCapacitySummary."""


def known_plans(pools: Sequence[Mapping[str, Any]], *, where: str) -> dict[str, PlanSeen]:
    """Return the plans of ``GET /pools`` by ARN, as if all their windows were still to come.

    Args:
        pools: The answer's pools. A stack of an earlier release says no windows: its plans are not known.
        where: Address of the stack, for errors.

    Raises:
        UnexpectedAnswerError: A window cannot be read.
    """
    try:
        return dict(_plans(pools))
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise UnexpectedAnswerError(where, what="no windows of training plans that can be read") from error


def _plans(pools: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, PlanSeen]]:
    for pool in pools:
        for view in pool.get("plans") or ():
            windows = tuple(_windows(view.get("windows") or ()))
            if windows and view.get("instance_type"):
                yield view["arn"], _seen(view, windows)


def _seen(view: Mapping[str, Any], windows: tuple[Window, ...]) -> PlanSeen:
    fee = view.get("fee_usd")
    return PlanSeen(
        arn=view["arn"],
        status="Scheduled",
        instance_type=view["instance_type"],
        total=max(window.instances for window in windows),
        fee_usd=None if fee is None else Decimal(str(fee)),
        windows=windows,
    )


def _windows(views: Sequence[Mapping[str, Any]]) -> Iterator[Window]:
    for view in views:
        if view["status"] not in _NEVER_OPEN:
            yield Window(
                begin=datetime.fromisoformat(view["from"]),
                end=datetime.fromisoformat(view["to"]),
                instances=int(view["instances"]),
            )
