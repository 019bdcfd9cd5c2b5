"""Does the errands of a pool: taken first, done second, deleted last; a death in between repeats one."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import assert_never

from trainmaster.alarms import full_name
from trainmaster.errands import Errand, ErrandKind
from trainmaster.errors import TrainmasterError
from trainmaster.scheduling import stopping_strays, telling
from trainmaster.scheduling.context import Pass

AT_ONCE = 25
"""Errands that one look at a pool does: about two seconds of calls."""
LOOKED_AT = 100
"""Errands that it reads: those that cannot be done for now do not hide the ones behind them."""
MAX_REFUSED = 3
"""Of one kind, then the look leaves the rest of it: without a connection each try takes seconds."""
OVERDUE = timedelta(minutes=5)
"""What is left for so long is an operator's business."""
TAKEN_FOR = timedelta(minutes=3)
"""Longer than the function may run (120 s)."""


@dataclass(slots=True)
class ErrandsDone:
    done: list[Errand] = field(default_factory=list)
    postponed: list[tuple[Errand, TrainmasterError]] = field(default_factory=list)
    """Refused for now; they are taken again once ``taken_until`` is over."""
    failures: list[Exception] = field(default_factory=list)
    left: int = 0
    """Not done by this look, as far as it read."""
    overdue: int = 0
    """Of these, left for longer than ``OVERDUE``."""
    refused: Counter[ErrandKind] = field(default_factory=Counter)

    @property
    def more(self) -> bool:
        """It stopped at its number. Errands change nothing that is planned with: no other look for less."""
        return len(self.done) == AT_ONCE and self.left > 0

    def wants(self, errand: Errand) -> bool:
        return len(self.done) < AT_ONCE and self.refused[errand.kind] < MAX_REFUSED


def run_errands(now: Pass, *, until: datetime) -> ErrandsDone:
    """One that cannot be done now never keeps the others waiting, and none keeps the queue waiting."""
    result = ErrandsDone()
    found = now.errands.errands(now.pool, limit=LOOKED_AT)
    for errand in found:
        at = now.clock()
        if at >= until:
            break
        if result.wants(errand) and now.errands.take(now.pool, errand, until=at + TAKEN_FOR, now=at):
            _try(errand, now, result)
    done = {errand.id for errand in result.done}
    left = [errand for errand in found if errand.id not in done]
    result.left = len(left)
    result.overdue = sum(errand.at <= now.clock() - OVERDUE for errand in left)
    return result


def _try(errand: Errand, now: Pass, result: ErrandsDone) -> None:
    try:
        _do(errand, now)
        now.errands.done(now.pool, errand)
    except TrainmasterError as error:
        result.postponed.append((errand, error))
        result.refused[errand.kind] += 1
    except Exception as error:  # noqa: BLE001  the bulkhead; the handler raises it after the pass
        result.failures.append(error)
    else:
        result.done.append(errand)


def _do(errand: Errand, now: Pass) -> None:
    match errand.kind:
        case ErrandKind.TELL:
            telling.tell(errand, now)
        case ErrandKind.DELETE_ALARMS:
            now.alarms.delete([full_name(now.stack, one) for one in errand.alarms])
        case ErrandKind.STOP_STRAY:
            stopping_strays.stop(errand, now)
        case _:
            assert_never(errand.kind)
