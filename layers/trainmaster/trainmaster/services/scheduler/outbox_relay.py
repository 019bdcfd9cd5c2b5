"""Deliver a pool's messages: lease, act, delete; a death in between repeats one."""

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
from trainmaster.services.array_jobs import ArrayJobs
from trainmaster.services.scheduler.context import PassContext
from trainmaster.services.scheduler.dependent_releases import release_dependents


def stop(message: OutboxMessage, context: PassContext) -> None:
    """Stop a training job; one that has ended is fine. Without the right it is recorded and reported once."""
    assert message.training_job_name is not None, message
    try:
        context.training.stop(message.training_job_name)
    except StopDeniedError as error:
        _give_up(message, str(error), context)


def _give_up(message: OutboxMessage, why: str, context: PassContext) -> None:
    record = message.found
    assert record is not None, message
    notice = not_stopped_notice(record.training_job_name, team=record.team, why=why)
    cause = f"not-stopped#{record.training_job_name}#{epoch_ms(record.at)}#{record.revision}"
    tell = to_tell(notice, cause=cause, at=context.clock())
    given_up = replace(record, outcome=Outcome.NOT_STOPPED)
    context.store.record_violation(given_up, replaces=record, messages=[tell])


def announce(message: OutboxMessage, context: PassContext) -> None:
    """Send the event at least once, with the message's id; the policy can switch events off."""
    if context.policy.governing.notifications.events:
        context.notifier.tell(notice_of(message).kind, event_detail(message))


def mail(messages: Sequence[OutboxMessage], context: PassContext) -> None:
    """Send one mail, about one notice or several of one kind to one team."""
    merged = mail_of(messages, stack=context.stack)
    context.mailer.mail(merged.subject, merged.text, merged.attributes)


AT_ONCE = 25
"""Messages that one look at a pool tries: about two seconds of calls."""
LOOKED_AT = 100
"""Messages that one look reads, so that those which fail for now do not hide the ones behind them."""
MOST_MAILS = 5
"""Mails of one kind to one team in one look; more become one mail, so that a fault for all is no flood."""
MAX_REFUSED = 3
"""Failures of one kind before the look leaves the rest: without a connection each try takes seconds."""
OVERDUE = timedelta(minutes=5)
"""Age at which a message left is reported to operators."""
TAKEN_FOR = timedelta(minutes=3)
"""Length of a lease: longer than the function may run (120 s)."""


@dataclass(slots=True)
class Relayed:
    done: list[OutboxMessage] = field(default_factory=list)
    postponed: list[tuple[OutboxMessage, TrainmasterError]] = field(default_factory=list)
    """Messages that failed for now; they are tried again once ``lease_until`` has passed."""
    failures: list[Exception] = field(default_factory=list)
    left: int = 0
    """Number of messages read and not done by this look."""
    overdue: int = 0
    """Number of these that were left for longer than ``OVERDUE``."""

    woken: set[str] = field(default_factory=set)
    """Pools in which jobs became eligible, or messages were left, because a job of this pool ended."""
    looks_again: bool = False
    """A job of this pool became eligible, or children of one that ended are left."""

    @property
    def more(self) -> bool:
        """Whether the look reached its limit, or changed what plans rest on, so that another is worth it."""
        return self.looks_again or (len(self.done) == AT_ONCE and self.left > 0)


def relay_messages(context: PassContext) -> Relayed:
    """Deliver messages; one that fails for now never delays the others, and none delays the queue.

    Mails come last: while SNS fails, programs receive a notice again and drop the duplicate; while
    EventBridge fails, people are not mailed again and again.
    """
    look = _Look(now=context)
    pending = context.messages.messages(context.pool, limit=LOOKED_AT)
    for message in pending:
        if look.wants(message):
            look.take(message)
    for messages in look.mails.values():
        for together in _mails(messages):
            if look.goes_on(MessageKind.TELL):
                look.attempt(together, partial(_mail, together, context))
    done = {message.id for message in look.result.done}
    left = [message for message in pending if message.id not in done]
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
    """Messages whose event was sent and whose mail is due, by team and kind."""

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
        """Act on messages and delete them if ``act`` returns True; failures are noted."""
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
                self.now.alarms.delete([full_name(self.now.stack, alarm) for alarm in message.alarms])
            case MessageKind.STOP_UNMANAGED:
                stop(message, self.now)
            case MessageKind.RELEASE_DEPENDENTS:
                return self._release(message)
            case MessageKind.FOLLOW_ARRAY:
                return self._follow(message)
            case _:
                assert_never(message.kind)
        return True

    def _release(self, message: OutboxMessage) -> bool:
        released = release_dependents(message, self.now)
        self.result.woken |= released.pools
        self.result.looks_again |= not released.is_whole or self.now.pool in released.pools
        return released.is_whole

    def _follow(self, message: OutboxMessage) -> bool:
        """Have the jobs of an array follow it, slice by slice; the next look sees what they are now."""
        now, behind = self.now, int(message.upto or -1)
        jobs = ArrayJobs(reader=now.reader, pools=now.pools, store=now.store, clock=now.clock)
        self.result.looks_again = True
        while not now.deadline.is_over:
            array = None if message.array is None else now.reader.array(message.array)
            if array is None:
                return True
            upto = jobs.follow(array, now.pool_policy, behind=behind, releases=bool(message.releases))
            if upto is None:
                return True
            behind = upto
            now.store.note_released(now.pool, message, upto=str(behind))
        return False

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
