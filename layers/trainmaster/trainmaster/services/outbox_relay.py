"""Does the errands of a pool: taken first, done second, deleted last; a death in between repeats one."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from trainmaster.core.errors import StopDeniedError, TrainmasterError
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.monitoring.alarms import full_name
from trainmaster.core.outbox import not_stopped_notice, to_tell
from trainmaster.core.outbox.messages import Errand, ErrandKind, NoticeKind
from trainmaster.core.outbox.render import event_detail, is_mailed, mail_of, notice_of
from trainmaster.core.rules.violation import Outcome
from trainmaster.services.scheduler.context import Pass


def stop(errand: Errand, now: Pass) -> None:
    """One that has ended is fine. Without the right: written down, told, and not tried again."""
    assert errand.training_job_name is not None, errand
    try:
        now.training.stop(errand.training_job_name)
    except StopDeniedError as error:
        _give_up(errand, str(error), now)


def _give_up(errand: Errand, why: str, now: Pass) -> None:
    found = errand.found
    assert found is not None, errand
    notice = not_stopped_notice(found.training_job_name, team=found.team, why=why)
    cause = f"not-stopped#{found.training_job_name}#{epoch_ms(found.at)}#{found.revision}"
    tell = to_tell(notice, cause=cause, at=now.clock())
    given_up = replace(found, outcome=Outcome.NOT_STOPPED)
    now.store.record_violation(given_up, replaces=found, errands=[tell])


def announce(errand: Errand, now: Pass) -> None:
    """The event; the policy can do without. At least once: it carries the errand's id."""
    if now.policy.governing.notifications.events:
        now.notifier.tell(notice_of(errand).kind, event_detail(errand))


def mail(errands: Sequence[Errand], now: Pass) -> None:
    """One mail, of one notice or of several of one kind to one team."""
    one = mail_of(errands, stack=now.stack)
    now.mailer.mail(one.subject, one.text, one.attributes)


AT_ONCE = 25
"""Errands that one look at a pool tries: about two seconds of calls."""
LOOKED_AT = 100
"""Errands that it reads: those that cannot be done for now do not hide the ones behind them."""
MOST_MAILS = 5
"""Of one kind to one team in one look; more are one mail: a fault that hits all is no flood."""
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

    @property
    def more(self) -> bool:
        """It did all it may. Errands change nothing that is planned with: no other look for less."""
        return len(self.done) == AT_ONCE and self.left > 0


def run_errands(now: Pass, *, until: datetime) -> ErrandsDone:
    """One that cannot be done now never keeps the others waiting, and none keeps the queue waiting.

    Mails come last: while SNS takes nothing programs hear of a notice again and drop what they know; while
    EventBridge takes nothing people are not mailed again and again.
    """
    look = _Look(now=now, until=until)
    found = now.errands.errands(now.pool, limit=LOOKED_AT)
    for errand in found:
        if look.wants(errand):
            look.take(errand)
    for errands in look.mails.values():
        for together in _mails(errands):
            if look.goes_on(ErrandKind.TELL):
                look.attempt(together, partial(_mail, together, now))
    done = {errand.id for errand in look.result.done}
    left = [errand for errand in found if errand.id not in done]
    look.result.left = len(left)
    look.result.overdue = sum(errand.at <= now.clock() - OVERDUE for errand in left)
    return look.result


@dataclass(slots=True, kw_only=True)
class _Look:
    now: Pass
    until: datetime
    result: ErrandsDone = field(default_factory=ErrandsDone)
    taken: int = 0
    refused: Counter[ErrandKind] = field(default_factory=Counter)
    mails: dict[tuple[str, NoticeKind], list[Errand]] = field(default_factory=lambda: defaultdict(list))
    """Announced, and still to be mailed: by team and kind."""

    def goes_on(self, kind: ErrandKind) -> bool:
        return self.now.clock() < self.until and self.refused[kind] < MAX_REFUSED

    def wants(self, errand: Errand) -> bool:
        return self.taken < AT_ONCE and self.goes_on(errand.kind)

    def take(self, errand: Errand) -> None:
        at = self.now.clock()
        if self.now.errands.take(self.now.pool, errand, until=at + TAKEN_FOR, now=at):
            self.taken += 1
            self.attempt([errand], partial(self._do, errand))

    def attempt(self, errands: Sequence[Errand], act: Callable[[], bool]) -> None:
        """``act`` says whether they are done with it."""
        try:
            if act():
                for errand in errands:
                    self.now.errands.done(self.now.pool, errand)
                    self.result.done.append(errand)
        except TrainmasterError as error:
            self.result.postponed += [(errand, error) for errand in errands]
            self.refused[errands[0].kind] += 1
        except Exception as error:  # noqa: BLE001  the bulkhead; the handler raises it after the pass
            self.result.failures.append(error)

    def _do(self, errand: Errand) -> bool:
        match errand.kind:
            case ErrandKind.TELL:
                return self._tell(errand)
            case ErrandKind.DELETE_ALARMS:
                self.now.alarms.delete([full_name(self.now.stack, one) for one in errand.alarms])
            case ErrandKind.STOP_STRAY:
                stop(errand, self.now)
            case _:
                assert_never(errand.kind)
        return True

    def _tell(self, errand: Errand) -> bool:
        notice = notice_of(errand)
        announce(errand, self.now)
        if is_mailed(notice):
            self.mails[notice.team, notice.kind].append(errand)
            return False
        return True


def _mails(errands: list[Errand]) -> list[list[Errand]]:
    return [errands] if len(errands) > MOST_MAILS else [[errand] for errand in errands]


def _mail(errands: Sequence[Errand], now: Pass) -> bool:
    mail(errands, now)
    return True
