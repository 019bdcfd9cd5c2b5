"""Does the errands of a pool: taken first, done second, deleted last; a death in between repeats one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from trainmaster.errands import Errand, ErrandKind
from trainmaster.errors import TrainmasterError
from trainmaster.scheduling import telling
from trainmaster.scheduling.context import Pass

AT_ONCE = 25
"""Errands of one look at a pool."""
TAKEN_FOR = timedelta(minutes=3)
"""Longer than the function may run (120 s)."""


@dataclass(slots=True)
class ErrandsDone:
    done: list[Errand] = field(default_factory=list)
    postponed: list[tuple[Errand, TrainmasterError]] = field(default_factory=list)
    """Refused for now; they are taken again once ``taken_until`` is over."""


def run_errands(now: Pass) -> ErrandsDone:
    """One that cannot be done now never keeps the others waiting."""
    result = ErrandsDone()
    for errand in _taken(now):
        try:
            _do(errand, now)
        except TrainmasterError as error:
            result.postponed.append((errand, error))
        else:
            now.errands.done(now.pool, errand)
            result.done.append(errand)
    return result


def _taken(now: Pass) -> Sequence[Errand]:
    at = now.clock()
    return [
        errand
        for errand in now.errands.errands(now.pool, limit=AT_ONCE)
        if now.errands.take(now.pool, errand, until=at + TAKEN_FOR, now=at)
    ]


def _do(errand: Errand, now: Pass) -> None:
    match errand.kind:
        case ErrandKind.TELL:
            telling.tell(errand, now)
        case ErrandKind.DELETE_ALARMS:
            now.alarms.delete(errand.alarms)
        case ErrandKind.STOP_STRAY:
            assert errand.training_job_name is not None, errand
            now.training.stop(errand.training_job_name)
        case _:
            assert_never(errand.kind)
