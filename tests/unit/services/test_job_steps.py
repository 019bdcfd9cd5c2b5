"""A step is applied to the job as it is at the write, whoever else is at it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.services.job_steps import TRIES, change_job

from tests.builders import NOON, job
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables


@dataclass
class Table:
    """One job in it, and others who change it while a step is thought about."""

    tables: Tables = field(default_factory=Tables)
    seen: list[int] = field(default_factory=list)
    """Priorities that the step saw."""
    others: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store, self.reader = MemoryJobStore(self.tables), MemoryReader(self.tables)
        self.store.submit(job("a"), b"{}")

    def read(self) -> Job | None:
        return self.reader.job("a")

    def raised(self) -> None:
        """Somebody raises its priority by ten."""
        before = self.tables.jobs["a"]
        after = replace(before, priority=before.priority + 10)
        self.store.commit([Change(before=before, after=after)], at=NOON)

    def step(self, one: Job) -> Change | None:
        self.seen.append(one.priority)
        if self.others:
            self.others.pop(0)()
        return Change(before=one, after=replace(one, priority=one.priority + 1))

    def change(self, step: Callable[[Job], Change | None] | None = None) -> Change | None:
        return change_job(
            self.read(), step or self.step, read=self.read, store=self.store, clock=lambda: NOON
        )


def test_a_step_is_written_and_handed_back_with_its_version() -> None:
    table = Table()
    change = table.change()
    assert change is not None
    assert (change.before.ver, change.after.ver, change.after.priority) == (0, 1, 1)
    assert table.read() == change.after


def test_after_a_lost_race_the_step_sees_what_came_of_it() -> None:
    table = Table()
    table.others = [table.raised, table.raised]
    change = table.change()
    assert table.seen == [0, 10, 20]
    assert change is not None
    assert (change.before.priority, change.after.priority) == (20, 21)


def test_a_step_with_nothing_to_do_writes_nothing() -> None:
    table = Table()
    assert table.change(lambda _: None) is None
    assert table.read() == job("a")


def test_a_job_that_is_gone_is_left_alone() -> None:
    table = Table()
    table.tables.jobs.clear()
    assert table.change() is None
    table = Table()
    table.others = [table.tables.jobs.clear]
    assert table.change() is None
    assert table.seen == [0]


def test_it_gives_up_when_others_keep_changing_the_job() -> None:
    table = Table()
    table.others = [table.raised] * TRIES
    with pytest.raises(LostRaceError, match="kept changing"):
        table.change()
    assert len(table.seen) == TRIES
