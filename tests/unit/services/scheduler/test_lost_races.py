"""Races that a pass loses against others: what it reads again, and what it takes for broken."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from trainmaster.adapters.dynamodb.codec import decode, encode
from trainmaster.core.errors import LostRaceError, RowSetAsideError, TrainingRefusedError
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.refused_starts import Sender, Trial
from trainmaster.services.scheduler import role_trials
from trainmaster.services.scheduler.broken_rows import read_job

from tests.builders import NOON, live_job, waiting

REFUSED = TrainingRefusedError("ValidationException: no such image")
TRIAL = Trial(sender=Sender(key="k", role_arn="arn:aws:iam::111122223333:role/train"))


class Roles:
    def __init__(self) -> None:
        self.records: dict[str, Any] = {}
        self.reads = 0

    def read_again(self, _: object) -> None:
        self.reads += 1

    def note(self, change: object) -> None: ...


class Context:
    """A pass whose first writes lose against others."""

    def __init__(self, stored: Job | None, losses: int) -> None:
        self.stored, self.losses = stored, losses
        self.written: list[Change] = []
        self.roles = Roles()
        self.pool = "main"
        self.reader = SimpleNamespace(job=lambda _: self.stored)
        self.pools = SimpleNamespace(role_starts=lambda _: {})
        self.store = SimpleNamespace(commit=self._commit, remove_entry=self._remove)

    def clock(self) -> Any:
        return NOON

    def _commit(self, changes: list[Change], **_: object) -> None:
        if self.losses:
            self.losses -= 1
            raise LostRaceError("the role's record has changed")
        self.written += changes

    def _remove(self, *_: object) -> None:
        raise LostRaceError("the entry has changed")


def as_the_table_keeps_it(claimed: Job) -> Job:
    return decode(Job, encode(claimed))


def test_a_refusal_that_loses_a_race_for_the_role_is_written_at_the_next_try() -> None:
    """Clocks have microseconds and the table has none, which makes the job no other one."""
    at = NOON + timedelta(microseconds=433_556)
    begun = live_job(state=JobState.STARTING)
    live = begun.live_attempt
    claimed = replace(begun, live=replace(live, claim=replace(live.claim, at=at)))
    stored = as_the_table_keeps_it(claimed)
    assert stored != claimed
    context: Any = Context(stored, losses=2)
    role_trials.refused(
        claimed, REFUSED, TRIAL, context, undone=lambda after: Change(before=claimed, after=after)
    )
    assert context.roles.reads == 2
    assert [change.after.is_waiting for change in context.written] == [True]


def test_a_refusal_of_a_job_that_has_changed_is_left_to_who_changed_it() -> None:
    claimed = live_job(state=JobState.STARTING)
    context: Any = Context(live_job(state=JobState.STARTING, ver=claimed.ver + 1), losses=1)
    with pytest.raises(LostRaceError):
        role_trials.refused(
            claimed, REFUSED, TRIAL, context, undone=lambda after: Change(before=claimed, after=after)
        )
    assert context.written == []


def test_an_entry_whose_job_another_pass_has_started_is_no_broken_row() -> None:
    context: Any = Context(live_job("a"), losses=0)
    with pytest.raises(LostRaceError) as lost:
        read_job(waiting("a"), context)
    assert not isinstance(lost.value, RowSetAsideError)


def test_an_entry_without_a_job_that_cannot_be_removed_is_set_aside() -> None:
    context: Any = Context(None, losses=0)
    with pytest.raises(RowSetAsideError):
        read_job(waiting("a"), context)
