"""Does the messages of a pool: taken first, done second, deleted last; a death in between repeats one."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import assert_never

from trainmaster.core.errors import StopDeniedError, TrainmasterError, WriteRefusedError
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.monitoring.alarms import full_name
from trainmaster.core.outbox import not_stopped_notice, to_tell
from trainmaster.core.outbox.messages import MessageKind, NoticeKind, OutboxMessage
from trainmaster.core.outbox.render import event_detail, is_mailed, mail_of, notice_of
from trainmaster.core.rules.violation import Outcome
from trainmaster.services.dependent_releases import release_dependents
from trainmaster.services.scheduler.context import PassContext


def stop(message: OutboxMessage, context: PassContext) -> None:
    """One that has ended is fine. Without the right: recorded, told, and not tried again."""
    assert message.training_job_name is not None, message
    try:
        context.training.stop(message.training_job_name)
    except StopDeniedError as error:
        _give_up(message, str(error), context)


def _give_up(message: OutboxMessage, why: str, context: PassContext) -> None:
    found = message.found
    assert found is not None, message
    notice = not_stopped_notice(found.training_job_name, team=found.team, why=why)
    cause = f"not-stopped#{found.training_job_name}#{epoch_ms(found.at)}#{found.revision}"
    tell = to_tell(notice, cause=cause, at=context.clock())
    given_up = replace(found, outcome=Outcome.NOT_STOPPED)
    context.store.record_violation(given_up, replaces=found, messages=[tell])


def announce(message: OutboxMessage, context: PassContext) -> None:
    """The event; the policy can do without. At least once: it carries the message's id."""
    if context.policy.governing.notifications.events:
        context.notifier.tell(notice_of(message).kind, event_detail(message))


def mail(messages: Sequence[OutboxMessage], context: PassContext) -> None:
    """One mail, of one notice or of several of one kind to one team."""
    one = mail_of(messages, stack=context.stack)
    context.mailer.mail(one.subject, one.text, one.attributes)


AT_ONCE = 25
"""Messages that one look at a pool tries: about two seconds of calls."""
LOOKED_AT = 100
"""Messages that it reads: those that cannot be done for now do not hide the ones behind them."""
MOST_MAILS = 5
"""Of one kind to one team in one look; more are one mail: a fault that hits all is no flood."""
MAX_REFUSED = 3
"""Of one kind, then the look leaves the rest of it: without a connection each try takes seconds."""
OVERDUE = timedelta(minutes=5)
"""What is left for this long is an operator's business."""
TAKEN_FOR = timedelta(minutes=3)
"""Longer than the function may run (120 s)."""


@dataclass(slots=True)
class Relayed:
    done: list[OutboxMessage] = field(default_factory=list)
    postponed: list[tuple[OutboxMessage, TrainmasterError]] = field(default_factory=list)
    """Refused for now; they are taken again once ``lease_until`` is over."""
    failures: list[Exception] = field(default_factory=list)
    left: int = 0
    """Not done by this look, as far as it read."""
    overdue: int = 0
    """Of these, left for longer than ``OVERDUE``."""

    woken: set[str] = field(default_factory=set)
    """Pools in which jobs became eligible, or messages were left, because a job of this pool ended."""
    looks_again: bool = False
    """A job of this pool became eligible, or children of one that ended are left."""

    @property
    def more(self) -> bool:
        """It did all it may, or what is planned with has changed: no other look for less."""
        return self.looks_again or (len(self.done) == AT_ONCE and self.left > 0)


def relay_messages(context: PassContext) -> Relayed:
    """One that cannot be done now never keeps the others waiting, and none keeps the queue waiting.

    Mails come last: while SNS takes nothing programs hear of a notice again and drop what they know; while
    EventBridge takes nothing people are not mailed again and again.
    """
    look = _Look(now=context)
    found = context.messages.messages(context.pool, limit=LOOKED_AT)
    for message in found:
        if look.wants(message):
            look.take(message)
    for messages in look.mails.values():
        for together in _mails(messages):
            if look.goes_on(MessageKind.TELL):
                look.attempt(together, partial(_mail, together, context))
    done = {message.id for message in look.result.done}
    left = [message for message in found if message.id not in done]
    look.result.left = len(left)
    look.result.overdue = sum(message.at <= context.clock() - OVERDUE for message in left)
    return look.result


@dataclass(slots=True, kw_only=True)
class _Look:
    now: PassContext
    result: Relayed = field(default_factory=Relayed)
    taken: int = 0
    refused: Counter[MessageKind] = field(default_factory=Counter)
    mails: dict[tuple[str, NoticeKind], list[OutboxMessage]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Announced, and still to be mailed: by team and kind."""

    def goes_on(self, kind: MessageKind) -> bool:
        return not self.now.deadline.is_over and self.refused[kind] < MAX_REFUSED

    def wants(self, message: OutboxMessage) -> bool:
        return self.taken < AT_ONCE and self.goes_on(message.kind)

    def take(self, message: OutboxMessage) -> None:
        at = self.now.clock()
        if self.now.messages.take(self.now.pool, message, until=at + TAKEN_FOR, now=at):
            self.taken += 1
            self.attempt([message], partial(self._do, message))

    def attempt(self, messages: Sequence[OutboxMessage], act: Callable[[], bool]) -> None:
        """``act`` says whether they are done with it."""
        try:
            if act():
                for message in messages:
                    self.now.messages.done(self.now.pool, message)
                    self.result.done.append(message)
        except WriteRefusedError as error:
            self.result.failures.append(error)
        except TrainmasterError as error:
            self.result.postponed += [(message, error) for message in messages]
            self.refused[messages[0].kind] += 1
        except Exception as error:  # noqa: BLE001  the bulkhead; the handler raises it after the pass
            self.result.failures.append(error)

    def _do(self, message: OutboxMessage) -> bool:
        match message.kind:
            case MessageKind.TELL:
                return self._tell(message)
            case MessageKind.DELETE_ALARMS:
                self.now.alarms.delete([full_name(self.now.stack, one) for one in message.alarms])
            case MessageKind.STOP_UNMANAGED:
                stop(message, self.now)
            case MessageKind.RELEASE_DEPENDENTS:
                return self._release(message)
            case _:
                assert_never(message.kind)
        return True

    def _release(self, message: OutboxMessage) -> bool:
        released = release_dependents(message, self.now)
        self.result.woken |= released.pools
        self.result.looks_again |= not released.is_whole or self.now.pool in released.pools
        return released.is_whole

    def _tell(self, message: OutboxMessage) -> bool:
        notice = notice_of(message)
        announce(message, self.now)
        if is_mailed(notice):
            self.mails[notice.team, notice.kind].append(message)
            return False
        return True


def _mails(messages: list[OutboxMessage]) -> list[list[OutboxMessage]]:
    return [messages] if len(messages) > MOST_MAILS else [[message] for message in messages]


def _mail(messages: Sequence[OutboxMessage], context: PassContext) -> bool:
    mail(messages, context)
    return True
