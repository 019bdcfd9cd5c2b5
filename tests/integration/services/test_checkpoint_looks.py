"""Who is told that a job saves no more: over ports in memory, each call one run of ``reconcile``."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.observations import Newest
from trainmaster.core.outbox.messages import NoticeKind
from trainmaster.services.reconciler import CheckpointLooks

from tests.builders import NOON, attempt, live_job, minutes
from tests.memory.edges import FOREVER, MemoryCheckpoints
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

TWO_HOURS = timedelta(hours=2)
URI = "s3://bucket/checkpoints"


@dataclass
class World:
    tables: Tables = field(default_factory=Tables)
    checkpoints: MemoryCheckpoints = field(default_factory=MemoryCheckpoints)
    now: datetime = NOON

    def __post_init__(self) -> None:
        self.reader, self.store = MemoryReader(self.tables), MemoryJobStore(self.tables)
        live = attempt("a", training_since=NOON - minutes(180), secondary_status="Training")
        self.store.submit(live_job("a", checkpoint_uri=URI, live=live), b"{}")

    def five_runs(self, *, others_wait: bool = False) -> list[Exception]:
        looks = CheckpointLooks(
            reader=self.reader, store=self.store, checkpoints=self.checkpoints, clock=lambda: self.now
        )
        failures: list[Exception] = []
        for _ in range(5):
            self.now += minutes(1)
            live = self.reader.running("main")
            failures += looks.run(live, others_wait=others_wait, max_age=TWO_HOURS, deadline=FOREVER)
        return failures

    def live(self) -> Attempt:
        found = self.tables.jobs["a"].live
        assert found is not None
        return found

    def told(self) -> list[NoticeKind]:
        messages = self.store.messages("main", limit=99)
        return [message.notice.kind for message in messages if message.notice is not None]


@pytest.fixture
def world() -> World:
    return World()


def test_a_job_that_saves_no_more_is_told_about_once(world: World) -> None:
    world.checkpoints.written[URI] = NOON - minutes(130)
    for _ in range(3):
        world.five_runs()
    assert world.live().checkpoint.overdue
    assert world.told() == [NoticeKind.CHECKPOINT_OVERDUE]


def test_a_job_that_saves_again_is_told_about_anew_when_it_stops_once_more(world: World) -> None:
    world.five_runs()
    world.checkpoints.written[URI] = world.now
    world.five_runs()
    assert not world.live().checkpoint.overdue
    world.now += TWO_HOURS
    world.five_runs()
    assert world.told() == [NoticeKind.CHECKPOINT_OVERDUE] * 2


def test_a_job_that_saves_in_time_costs_no_call_until_its_checkpoint_is_old(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.checkpoints.written[URI] = NOON
    world.five_runs()
    monkeypatch.delattr(MemoryCheckpoints, "newest")
    world.five_runs()
    assert not world.live().checkpoint.overdue


def test_what_the_stack_may_not_read_is_never_called_overdue(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = Newest(is_certain=False)
    monkeypatch.setattr(MemoryCheckpoints, "newest", lambda _self, _uri: unknown)
    world.five_runs()
    assert not world.live().checkpoint.overdue
    assert world.told() == []


def test_an_outage_of_s3_is_left_for_the_next_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: MemoryCheckpoints, _uri: str) -> Newest:
        raise UnavailableError("S3 did not answer")

    monkeypatch.setattr(MemoryCheckpoints, "newest", broken)
    assert [str(error) for error in world.five_runs(others_wait=True)] == ["S3 did not answer"]
