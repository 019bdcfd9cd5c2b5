"""When a training plan is to be described, and what a description changes in what is known of it."""

from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.policy.plan_windows import ENDS_BEFORE, PlanSeen, count_at

EVERY = timedelta(minutes=5)
"""Time between two looks at a plan."""
NEAR = timedelta(minutes=10)
"""Time around the beginning, closing and end of a window in which there is a look each minute."""
LOOKS_UNTIL_LOWERED = 2
"""Looks in a row at which fewer instances must be available than we leave, before they count as taken."""
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def is_due(known: PlanSeen | None, *, drain: timedelta, turn: int, now: datetime) -> bool:
    """Tell whether a plan is to be described in this minute.

    Args:
        known: What is known of it; None: nothing.
        drain: How long before the end of the instances its jobs are stopped.
        turn: Number of the plan among all, so that not all are described in the same minute.
        now: The instant of the run, of which there is one a minute.
    """
    if known is None or not known.instance_type:
        return True
    if ((now - _EPOCH) // _MINUTE + turn) % (EVERY // _MINUTE) == 0:
        return True
    instants = (
        at
        for window in known.windows
        for at in (window.begin, window.closing(drain), window.end - ENDS_BEFORE, window.end)
    )
    return any(abs(now - at) <= NEAR for at in instants)


def after_look(
    described: PlanSeen, known: PlanSeen | None, *, drain: timedelta, used: int, now: datetime
) -> PlanSeen:
    """Return what is known of a plan after a look.

    Args:
        described: The plan as SageMaker describes it.
        known: What was known before; None: nothing.
        drain: As for ``is_due``.
        used: Instances of it that jobs hold, by our counters.
        now: Instant of the look.
    """
    looks, at_least = known.lower if known is not None else (0, 0)
    missing = _missing(described, drain=drain, used=used, now=now)
    if missing <= 0:
        return replace(described, unseen=0, lower=(0, 0))
    looks, at_least = looks + 1, min(at_least, missing) if looks else missing
    enough = looks >= LOOKS_UNTIL_LOWERED
    # More looks than needed would be a change, and a write, at each of them.
    return replace(
        described, unseen=at_least if enough else 0, lower=(min(looks, LOOKS_UNTIL_LOWERED), at_least)
    )


def _missing(plan: PlanSeen, *, drain: timedelta, used: int, now: datetime) -> int:
    """Return how many of the instances that we leave SageMaker does not call available."""
    usable = count_at(replace(plan, unseen=0), drain, now).usable
    if plan.available is None or plan.status != "Active" or not usable:
        return 0
    return usable - used - plan.available


def unread(arn: str, known: PlanSeen | None, *, why: str, at: datetime) -> PlanSeen:
    """Return what is known of a plan that cannot be described: what was known, and why it may be outdated."""
    before = known or PlanSeen(arn=arn, status="Unknown", instance_type="", total=0)
    return replace(before, trouble=why, trouble_since=at)
