"""Whose fault a refused start is, told from what AWS said to other starts with the role."""

from dataclasses import replace
from datetime import timedelta

import pytest
from trainmaster.core.arrays.tasks import array_entry_id, task_entry_id
from trainmaster.core.errors import AccessRefusedError, TrainingRefusedError
from trainmaster.core.jobs.index_sets import TaskOf
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import refused_starts
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.refused_starts import (
    Sender,
    Trial,
    Verdict,
    accepted,
    decide,
    probed,
    wait_after,
)
from trainmaster.core.monitoring.metric_samples import samples
from trainmaster.core.monitoring.metrics import STARTS_PAUSED, STARTS_REFUSED
from trainmaster.core.outbox import messages_of
from trainmaster.core.planning.refusal_records import (
    MOST_ROLES,
    RoleChange,
    RoleStarts,
    role_digest,
    starts_key,
)

from tests.builders import NOON, live_job, minutes

ROLE = "arn:aws:iam::111122223333:role/train"
KEY = role_digest(ROLE)
SENDER = Sender(key=KEY, role_arn=ROLE)
DENIED = AccessRefusedError("AccessDeniedException: no iam:PassRole")
INVALID = TrainingRefusedError("ValidationException: no such subnet")


class Role:
    """Refusals and accepted starts of one role, one after the other."""

    def __init__(self) -> None:
        self.records: dict[str, RoleStarts] = {}
        self.jobs: dict[str, Job] = {}
        self.now = NOON

    @property
    def record(self) -> RoleStarts:
        return self.records[KEY]

    def refuses(
        self, name: str, error: TrainingRefusedError = DENIED, *, is_probe: bool = False, after: float = 0
    ) -> Verdict:
        self.now += minutes(after)
        job = self.jobs.get(name) or live_job(state=JobState.STARTING, name=name, entry_id=name)
        known = self.records[KEY].number if KEY in self.records else 0
        trial = Trial(sender=SENDER, is_probe=is_probe, known=known)
        verdict = decide(job, error, trial, self.records, at=self.now)
        self.records[KEY] = verdict.role.after
        self.jobs[name] = replace(job, starts=replace(job.starts, by_request=verdict.refusals))
        return verdict

    def takes(self, *, known: int | None = None) -> None:
        after = accepted(self.record, known_when_sent=self.record.number if known is None else known)
        self.records[KEY] = after or self.record


@pytest.fixture
def role() -> Role:
    return Role()


@pytest.mark.parametrize(("times", "wait"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 15), (6, 15), (5000, 15)])
def test_a_refused_job_is_tried_after_1_2_4_and_at_most_15_minutes(times: int, wait: int) -> None:
    assert wait_after(times) == minutes(wait)


def test_a_second_refusal_after_a_start_that_was_taken_is_the_jobs_own_fault(role: Role) -> None:
    assert not role.refuses("bad").is_own_fault
    role.takes()
    assert role.refuses("bad").is_own_fault


def test_a_start_sent_before_the_first_refusal_was_known_proves_nothing(role: Role) -> None:
    role.refuses("bad")
    role.takes(known=0)
    assert not role.refuses("bad").is_own_fault


def test_a_start_taken_before_the_first_refusal_proves_nothing(role: Role) -> None:
    role.refuses("other")
    role.takes()
    role.refuses("bad")
    assert not role.refuses("bad", after=1).is_own_fault


def test_of_two_that_are_refused_in_turn_neither_is_at_fault(role: Role) -> None:
    verdicts = [role.refuses(name, INVALID, after=30) for _ in range(9) for name in ("one", "two")]
    assert not any(verdict.is_own_fault for verdict in verdicts)
    assert role.record.pause is None


@pytest.mark.parametrize(("error", "times"), [(INVALID, 3), (TrainingRefusedError("x", code="P"), 3)])
def test_a_request_refused_three_times_with_no_other_tried_is_at_fault(
    error: TrainingRefusedError, times: int, role: Role
) -> None:
    assert [role.refuses("bad", error, after=1).is_own_fault for _ in range(times)] == [False, False, True]


@pytest.mark.parametrize(("waits", "is_over"), [(59, False), (60, True)])
def test_a_right_that_is_missing_for_an_hour_with_no_other_tried_is_at_fault(
    waits: float, *, is_over: bool, role: Role
) -> None:
    role.refuses("bad")
    for _ in range(5):
        role.refuses("bad", after=1)
    assert role.refuses("bad", after=waits - 5).is_own_fault is is_over


def test_another_that_is_tried_makes_the_count_of_a_lone_job_begin_again(role: Role) -> None:
    role.refuses("bad", INVALID)
    role.refuses("bad", INVALID)
    role.refuses("other", INVALID)
    assert [role.refuses("bad", INVALID).is_own_fault for _ in range(3)] == [False, False, True]


def task(role: Role, array: str, index: int) -> str:
    """Make a task of an array; its entry id differs from its siblings' in the last characters."""
    name = f"{array}-{index}"
    made = live_job(state=JobState.STARTING, name=name)
    of = TaskOf(name=array, index=index, position=index)
    entry_id = task_entry_id(array_entry_id(array.rjust(26, "0")), index)
    role.jobs[name] = replace(made, spec=replace(made.spec, array=of, entry_id=entry_id))
    return name


def test_tasks_of_one_array_are_one_request_that_pauses_no_other_job(role: Role) -> None:
    tasks = [task(role, "sweep", index) for index in range(8)]
    assert not any(role.refuses(name, INVALID).is_own_fault for name in tasks)
    assert role.record.pause is None
    for name in (task(role, "other", 0), task(role, "third", 0)):
        role.refuses(name, INVALID)
    assert role.record.pause is not None, "three submissions in a row are no coincidence"


def test_a_task_is_at_fault_though_only_others_of_its_array_are_tried(role: Role) -> None:
    tasks = [task(role, "sweep", index) for index in range(3)]
    verdicts = [[role.refuses(name, INVALID, after=1).is_own_fault for name in tasks] for _ in range(3)]
    assert verdicts == [[False] * 3, [False] * 3, [True] * 3]


def test_another_submission_that_is_tried_makes_the_count_of_a_task_begin_again(role: Role) -> None:
    name = task(role, "sweep", 0)
    role.refuses(name, INVALID)
    role.refuses(name, INVALID)
    role.refuses("other", INVALID)
    role.refuses(task(role, "sweep", 1), INVALID)
    assert [role.refuses(name, INVALID).is_own_fault for _ in range(3)] == [False, False, True]


def test_a_record_that_was_dropped_meanwhile_may_have_known_of_others(role: Role) -> None:
    role.refuses("bad", INVALID)
    role.refuses("bad", INVALID)
    role.records.clear()
    assert not role.refuses("bad", INVALID).is_own_fault
    assert role.record.number == 3, "numbers never go back"


def test_three_different_jobs_refused_with_one_code_begin_a_pause(role: Role) -> None:
    for name in ("one", "two", "two", "one"):
        assert role.refuses(name).role.after.pause is None
    begins = role.refuses("three").role
    assert begins.begins_pause
    pause = role.record.pause
    assert pause is not None
    assert (pause.since, pause.code, pause.next_probe_at) == (
        NOON,
        "AccessDeniedException",
        NOON + minutes(1),
    )
    assert "iam:PassRole" in pause.message


def test_jobs_refused_with_different_codes_begin_none(role: Role) -> None:
    for number, error in enumerate((DENIED, INVALID, DENIED, INVALID)):
        role.refuses(f"job{number}", error)
    assert role.record.pause is None
    role.refuses("job4", INVALID)
    assert role.record.pause is not None


def test_a_start_that_is_taken_in_between_begins_the_count_again(role: Role) -> None:
    role.refuses("one")
    role.refuses("two")
    role.takes()
    role.refuses("three")
    role.refuses("four")
    assert role.record.pause is None


def test_jobs_at_fault_do_not_count_towards_a_pause(role: Role) -> None:
    for name in ("one", "two"):
        role.refuses(name)
    role.takes()
    assert role.refuses("one").is_own_fault
    assert role.refuses("two").is_own_fault
    role.refuses("three")
    assert role.record.pause is None


def paused(role: Role) -> Role:
    for name in ("one", "two", "three"):
        role.refuses(name)
    assert role.record.pause is not None
    return role


def test_probes_that_are_refused_come_further_and_further_apart(role: Role) -> None:
    paused(role)
    waits = []
    for number in range(6):
        role.refuses(f"probe{number}", is_probe=True, after=20)
        assert role.record.pause is not None
        waits.append(role.record.pause.next_probe_at - role.now)
    assert waits == [minutes(wait) for wait in (2, 4, 8, 15, 15, 15)]


def test_starts_that_were_under_way_when_a_pause_began_do_not_put_off_its_probe(role: Role) -> None:
    pause = paused(role).record.pause
    for number in range(5):
        role.refuses(f"late{number}")
    assert role.record.pause == pause


def test_while_starts_pause_nobody_is_at_fault(role: Role) -> None:
    role.refuses("bad")
    role.takes()
    paused(role)
    assert not role.refuses("bad", is_probe=True, after=90).is_own_fault


def test_the_first_start_that_is_taken_ends_a_pause_unless_it_was_sent_before(role: Role) -> None:
    role.refuses("zero")
    early = role.record.number
    paused(role)
    role.takes(known=early)
    assert role.record.pause is not None
    role.takes()
    assert role.record.pause is None
    assert role.record.refused == ()


def test_a_start_that_says_nothing_new_is_not_written(role: Role) -> None:
    role.refuses("one")
    role.takes()
    assert accepted(role.record, known_when_sent=role.record.number) is None
    assert accepted(role.record, known_when_sent=0) is None


def test_a_probe_takes_the_one_try_for_as_long_as_its_lease(role: Role) -> None:
    record = paused(role).record
    taken = probed(record, until=NOON + minutes(5))
    assert taken.pause is not None
    assert (taken.pause.next_probe_at, taken.ver) == (NOON + minutes(5), record.ver + 1)


def test_of_too_many_records_the_oldest_without_a_pause_goes() -> None:
    role = paused(Role())
    others = {
        f"role{number}": replace(
            role.record, pause=role.record.pause if number == 0 else None, at=NOON + minutes(number)
        )
        for number in range(MOST_ROLES)
    }
    job = live_job(state=JobState.STARTING)
    verdict = decide(job, DENIED, Trial(sender=SENDER), others, at=NOON + timedelta(hours=9))
    assert verdict.role.drops == "role1"
    assert decide(job, DENIED, Trial(sender=SENDER), {KEY: role.record, **others}, at=NOON).role.drops is None


def test_a_job_that_is_put_off_waits_under_the_same_attempt_and_quotes_aws(role: Role) -> None:
    verdict = role.refuses("one")
    job = live_job(state=JobState.STARTING, retries=2)
    after = refused_starts.put_off(job, verdict.refusals, DENIED.detail, now=NOON)
    assert (after.state, after.attempt, after.live) == (JobState.PENDING, job.attempt, None)
    assert (after.not_before, after.comebacks.retries) == (NOON + minutes(1), 2)
    assert after.waiting is not None
    assert after.waiting.code is ReasonCode.REFUSED
    assert DENIED.detail in after.waiting.message


def test_a_launcher_role_has_a_record_of_its_own() -> None:
    keys = {
        starts_key(KEY, launcher) for launcher in (None, "arn:aws:iam::1:role/a", "arn:aws:iam::1:role/b")
    }
    assert len(keys) == 3


def change_of(verdict: Verdict) -> Change:
    job = live_job(state=JobState.STARTING)
    after = refused_starts.put_off(job, verdict.refusals, DENIED.detail, now=NOON)
    return Change(before=job, after=after, role=verdict.role)


def counts(change: Change) -> list[str]:
    return [sample.metric.name for sample in samples(change)]


def test_refusals_are_counted_and_those_of_a_pause_are_what_the_alarm_looks_at(role: Role) -> None:
    refused, also_paused = [STARTS_REFUSED.name], [STARTS_REFUSED.name, STARTS_PAUSED.name]
    assert [counts(change_of(role.refuses(name))) for name in ("one", "two", "three")] == [
        refused,
        refused,
        also_paused,
    ]
    assert counts(change_of(role.refuses("four", is_probe=True))) == also_paused
    role.takes()
    assert counts(change_of(role.refuses("five"))) == refused


def test_a_pause_is_told_to_operators_with_the_change_that_begins_it(role: Role) -> None:
    def told(verdict: Verdict) -> list[str]:
        notices = [message.notice for message in messages_of(change_of(verdict), at=NOON)]
        return [str(notice.detail.get("subject")) for notice in notices if notice is not None]

    assert [told(role.refuses(name)) for name in ("one", "two", "three")] == [[], [], ["starts-paused"]]
    assert told(role.refuses("four", is_probe=True)) == []


def test_a_change_of_a_record_that_pauses_already_begins_no_pause(role: Role) -> None:
    record = paused(role).record
    assert not RoleChange(key=KEY, before=record, after=probed(record, until=NOON)).begins_pause
