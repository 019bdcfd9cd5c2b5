"""Messages of a pool: each is done, one that cannot be keeps nobody waiting, a death repeats it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.errors import UnavailableError
from trainmaster.core.outbox import to_tell
from trainmaster.core.outbox.messages import MessageKind, Notice, NoticeKind, OutboxMessage
from trainmaster.core.policy import parse_policy
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.context import PassContext
from trainmaster.services.scheduler.outbox_relay import TAKEN_FOR, Relayed, relay_messages

from tests.builders import NOON, minutes, pool
from tests.memory.edges import MemoryAlarms, MemoryMailer, MemoryNotifier, MemoryTurns, one_by_one
from tests.memory.reader import MemoryReader
from tests.memory.sagemaker import MemorySageMaker
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables


def notice(number: int, kind: NoticeKind = NoticeKind.JOB_FAILED) -> OutboxMessage:
    told = Notice(kind=kind, team="vision", job=f"job-{number:03d}", what=f"Number {number}.")
    return to_tell(told, cause=f"{number:03d}", at=NOON)


DELETES = OutboxMessage(id="999#alarms", kind=MessageKind.DELETE_ALARMS, at=NOON, alarms=("idle-job-1",))


@dataclass(slots=True)
class Desk:
    """One pool, and everybody who is told."""

    tables: Tables = field(default_factory=Tables)
    alarms: MemoryAlarms = field(default_factory=MemoryAlarms)
    notifier: MemoryNotifier = field(default_factory=MemoryNotifier)
    mailer: MemoryMailer = field(default_factory=MemoryMailer)
    now: datetime = NOON

    def leaves(self, *messages: OutboxMessage) -> None:
        MemoryJobStore(self.tables).leave("main", messages)

    def runs(self, document: dict[str, Any] | None = None, *, minutes_left: float = 1) -> Relayed:
        store, reader = MemoryJobStore(self.tables), MemoryReader(self.tables)
        context = PassContext(
            pool="main",
            policy_version=1,
            store=store,
            messages=store,
            reader=reader,
            pools=reader,
            training=MemorySageMaker(self.clock),
            alarms=self.alarms,
            notifier=self.notifier,
            mailer=self.mailer,
            turns=MemoryTurns(),
            beside=one_by_one,
            clock=self.clock,
            deadline=Deadline.at(self.now + minutes(minutes_left), self.clock),
            stack="prod",
            pool_policy=pool(),
            policy=parse_policy(document or {}),
        )
        return relay_messages(context)

    def clock(self) -> datetime:
        return self.now

    def left(self) -> list[str]:
        return [message_id for _, message_id in self.tables.messages]

    def events(self) -> list[str]:
        return [detail["id"] for _, detail in self.notifier.told]


@dataclass(slots=True)
class Refuses:
    """A mailer and notifier that AWS refuses."""

    error: BaseException = field(default_factory=lambda: UnavailableError("throttled"))
    on_try: Callable[[], None] = lambda: None
    tries: int = 0

    def tell(self, *_: object) -> None:
        self.tries += 1
        self.on_try()
        raise self.error

    mail = tell


def test_what_is_told_is_an_event_and_a_mail_with_the_same_id_and_then_gone() -> None:
    desk = Desk()
    desk.leaves(notice(1))
    assert desk.runs().left == 0
    assert [(kind, detail["id"]) for kind, detail in desk.notifier.told] == [("Job Failed", "001#job-failed")]
    ((subject, text),) = desk.mailer.mails
    assert subject == "[trainmaster] Job Failed: job-001"
    assert "message 001#job-failed" in text
    assert desk.left() == []


def test_without_events_people_are_told_all_the_same() -> None:
    desk = Desk()
    desk.leaves(notice(1))
    desk.runs({"notifications": {"events": False}})
    assert desk.notifier.told == []
    assert len(desk.mailer.mails) == 1


def test_what_happens_all_day_is_an_event_and_no_mail() -> None:
    desk = Desk()
    desk.leaves(notice(1, NoticeKind.JOB_COMPLETED))
    desk.runs()
    assert len(desk.notifier.told) == 1
    assert desk.mailer.mails == []


def test_a_mail_that_is_refused_is_sent_when_the_message_is_free_again() -> None:
    desk = Desk()
    desk.leaves(notice(1))
    mailer, desk.mailer = desk.mailer, Refuses()  # type: ignore[assignment]
    assert len(desk.runs().postponed) == 1
    desk.mailer = mailer
    desk.now += TAKEN_FOR - timedelta(seconds=1)
    assert desk.runs().left == 1
    desk.now += timedelta(seconds=1)
    assert desk.runs().left == 0
    assert desk.events() == ["001#job-failed", "001#job-failed"]  # programs drop the second
    assert len(mailer.mails) == 1


def test_while_nobody_can_be_told_three_are_tried_and_alarms_are_deleted() -> None:
    desk = Desk()
    desk.leaves(*[notice(number) for number in range(9)], DELETES)
    desk.notifier = refuses = Refuses()  # type: ignore[assignment]
    result = desk.runs()
    assert refuses.tries == 3
    assert [message.id for message in result.done] == ["999#alarms"]
    assert (result.left, result.more) == (9, False)


def test_messages_that_are_refused_do_not_hide_those_behind_them() -> None:
    desk = Desk()
    desk.leaves(*[notice(number) for number in range(40)], DELETES)
    desk.notifier = Refuses()  # type: ignore[assignment]
    assert [message.id for message in desk.runs().done] == ["999#alarms"]


def test_a_look_does_25_and_says_that_there_are_more() -> None:
    desk = Desk()
    desk.leaves(*[notice(number) for number in range(30)])
    result = desk.runs()
    assert (len(result.done), result.left, result.more) == (25, 5, True)
    result = desk.runs()
    assert (len(result.done), result.left, result.more) == (5, 0, False)


def test_messages_stop_when_the_time_of_the_pass_is_over() -> None:
    desk = Desk()
    desk.leaves(*[notice(number) for number in range(9)])

    def a_minute_passes() -> None:
        desk.now += minutes(1)

    desk.notifier = refuses = Refuses(on_try=a_minute_passes)  # type: ignore[assignment]
    desk.runs(minutes_left=2)
    assert refuses.tries == 2


def test_a_mistake_of_ours_in_one_message_is_a_failure_and_the_others_are_done() -> None:
    desk = Desk()
    broken = OutboxMessage(id="000#broken", kind=MessageKind.TELL, at=NOON)
    desk.leaves(broken, notice(1))
    result = desk.runs()
    assert [type(failure) for failure in result.failures] == [AssertionError]
    assert [message.id for message in result.done] == ["001#job-failed"]


def test_a_message_that_another_pass_is_at_is_left_to_it() -> None:
    desk = Desk()
    desk.leaves(notice(1))
    store = MemoryJobStore(desk.tables)
    assert store.take("main", notice(1), until=NOON + minutes(3), now=NOON)
    result = desk.runs()
    assert (result.done, result.left) == ([], 1)


def test_a_death_before_it_is_deleted_tells_it_again_under_the_same_id() -> None:
    desk = Desk()
    desk.leaves(notice(1))

    class DiedError(BaseException):
        """No ``except Exception`` sees it."""

    desk.mailer, mailer = Refuses(DiedError()), desk.mailer  # type: ignore[assignment]
    with pytest.raises(DiedError):
        desk.runs()
    desk.mailer = mailer
    desk.now += TAKEN_FOR
    desk.runs()
    assert desk.events() == ["001#job-failed", "001#job-failed"]
    assert desk.left() == []


def test_what_is_left_for_five_minutes_is_overdue() -> None:
    desk = Desk()
    desk.leaves(notice(1), notice(2))
    desk.notifier = Refuses()  # type: ignore[assignment]
    assert desk.runs().overdue == 0
    desk.now += minutes(5)
    assert desk.runs().overdue == 2


def test_a_hundred_jobs_that_fail_at_once_are_a_hundred_events_and_a_mail_a_look() -> None:
    desk = Desk()
    desk.leaves(*[notice(number) for number in range(100)])
    looks = [desk.runs() for _ in range(4)]
    assert [len(look.done) for look in looks] == [25, 25, 25, 25]
    assert len(set(desk.events())) == 100
    assert [subject for subject, _ in desk.mailer.mails] == [
        "[trainmaster] Job Failed: 25 of team vision"
    ] * 4
    assert desk.left() == []


def test_each_of_a_few_notices_is_a_mail_of_its_own() -> None:
    desk = Desk()
    desk.leaves(notice(1), notice(2, NoticeKind.JOB_IDLE), notice(3))
    desk.runs()
    assert [subject for subject, _ in desk.mailer.mails] == [
        "[trainmaster] Job Failed: job-001",
        "[trainmaster] Job Failed: job-003",
        "[trainmaster] Job Idle: job-002",
    ]


def test_more_than_five_of_a_kind_are_one_mail() -> None:
    desk = Desk()
    desk.leaves(*[notice(number) for number in range(6)], notice(6, NoticeKind.JOB_IDLE))
    desk.runs()
    assert [subject for subject, _ in desk.mailer.mails] == [
        "[trainmaster] Job Failed: 6 of team vision",
        "[trainmaster] Job Idle: job-006",
    ]


def test_a_mail_that_is_refused_postpones_all_that_is_in_it_and_no_other() -> None:
    desk = Desk()
    failed = [notice(number) for number in range(6)]
    desk.leaves(*failed, notice(6, NoticeKind.JOB_COMPLETED))
    desk.mailer = refuses = Refuses()  # type: ignore[assignment]
    result = desk.runs()
    assert refuses.tries == 1
    assert [message.id for message, _ in result.postponed] == [
        f"00{number}#job-failed" for number in range(6)
    ]
    assert [message.id for message in result.done] == ["006#job-completed"]
