"""Which shape is best by what the user asks for, and the tag that says so to the queue."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainmaster_client.advice.assessments import Assessment

_LONGEST_TAG = 256
"""SageMaker API reference, Tag, Value."""


class By(StrEnum):
    START = "start"
    COST = "cost"
    RISK = "risk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    best: Assessment
    why: str
    shapes: str
    """The value of ``trainmaster:alternatives``: the best first, then the others in the order asked for."""


def ranked(found: Sequence[Assessment], by: By) -> list[Assessment]:
    """What is not valid last; what is not known behind what is."""
    return sorted(found, key=lambda one: (not one.is_valid, *_keys(one, by)))


def recommend(order: Sequence[Assessment], by: By) -> Recommendation | None:
    """None: no shape is valid. ``order`` as ranked.

    One that does not fit the memory, or spot without checkpoints, only where there is no other.
    """
    sound = [one for one in order if one.is_sound]
    best = next(iter(sound or [one for one in order if one.is_valid]), None)
    if best is None:
        return None
    others = [one for one in sound if one is not best and one.answer.get("pool") == best.answer.get("pool")]
    shapes = _joined([str(one.candidate) for one in (best, *others) if one.candidate.shape is not None])
    return Recommendation(best=best, why=_why(best, by), shapes=shapes)


def _keys(one: Assessment, by: By) -> tuple[float, ...]:
    """Whole minutes: two dry runs are made seconds apart. Costs are what is expected, not the worst case."""
    start = math.inf if one.start is None else one.start.timestamp() // 60
    cost = math.inf if one.expected_cost_usd is None else one.expected_cost_usd
    expected = math.inf if one.expected_interruptions is None else one.expected_interruptions
    not_spot = float(not one.candidate.is_spot)
    match by:
        case By.START:
            return start, cost, not_spot
        case By.COST:
            return cost, not_spot, start
        case By.RISK:
            return expected, start, cost


def _why(best: Assessment, by: By) -> str:
    victims = len(best.answer.get("would_preempt") or ())
    preempts = f"it would stop {victims} running" if victims else "no running job is stopped for it"
    return f"{_advantage(best, by)}; {preempts}"


def _advantage(best: Assessment, by: By) -> str:
    match by:
        case By.START if best.start is not None:
            return "it is likely to start first"
        case By.COST if best.cost_usd is not None:
            return "it is likely to cost least"
        case By.RISK if best.expected_interruptions is not None:
            return "it is likely to be interrupted least"
    return "it is the first valid one, and no other is known to be better"


def _joined(shapes: list[str]) -> str:
    """As many as a tag holds."""
    value = ""
    for shape in dict.fromkeys(shapes):
        longer = f"{value} {shape}".strip()
        if len(longer) > _LONGEST_TAG:
            break
        value = longer
    return value
