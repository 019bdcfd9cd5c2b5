"""Decides which shape is best by what the user asks for, and writes the tag that tells the queue."""

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
    WORK = "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    best: Assessment
    why: str
    shapes: str
    """The value of ``trainmaster:alternatives``: the best first, then the others in the order asked for."""


def ranked(assessments: Sequence[Assessment], by: By) -> list[Assessment]:
    """Sort assessments, best first; unknown figures come after known ones, and invalid shapes last."""
    return sorted(assessments, key=lambda assessment: (not assessment.is_valid, *_keys(assessment, by)))


def recommend(order: Sequence[Assessment], by: By) -> Recommendation | None:
    """Recommend the best of ``order``, which is sorted by ``ranked``; None if no shape is valid.

    A shape that does not fit the memory, or spot without checkpoints, is recommended only if nothing
    else is valid.
    """
    sound = [assessment for assessment in order if assessment.is_sound]
    best = next(iter(sound or [assessment for assessment in order if assessment.is_valid]), None)
    if best is None:
        return None
    others = [
        assessment
        for assessment in sound
        if assessment is not best and assessment.answer.get("pool") == best.answer.get("pool")
    ]
    shapes = _joined(
        [
            str(assessment.candidate)
            for assessment in (best, *others)
            if assessment.candidate.shape is not None
        ]
    )
    return Recommendation(best=best, why=_why(best, by), shapes=shapes)


def _keys(assessment: Assessment, by: By) -> tuple[float, ...]:
    """Return the sort key of one assessment.

    Starts count in whole minutes, as two dry runs are made seconds apart. Costs are the expected ones,
    not the worst case.
    """
    start = math.inf if assessment.start is None else assessment.start.timestamp() // 60
    cost = math.inf if assessment.expected_cost_usd is None else assessment.expected_cost_usd
    expected = math.inf if assessment.expected_interruptions is None else assessment.expected_interruptions
    work = -(assessment.work_per_usd or 0.0)
    not_spot = float(not assessment.candidate.is_spot)
    match by:
        case By.START:
            return start, cost, not_spot
        case By.COST:
            return cost, not_spot, start
        case By.RISK:
            return expected, start, cost
        case By.WORK:
            return work, cost, start


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
        case By.WORK if best.work_per_usd is not None:
            return "a dollar gets most work done in it, by the runs measured"
    return "it is the first valid one, and no other is known to be better"


def _joined(shapes: list[str]) -> str:
    """Join as many shapes as a tag holds."""
    value = ""
    for shape in dict.fromkeys(shapes):
        longer = f"{value} {shape}".strip()
        if len(longer) > _LONGEST_TAG:
            break
        value = longer
    return value
