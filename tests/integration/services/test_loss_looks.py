"""What ``reconcile`` makes of the losses in the logs: over ports in memory, each look one run."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import MessageKind
from trainmaster.core.policy.loss_rule import LossReaction, LossRule
from trainmaster.services.metric_looks import MOST_LOGS, LossLooks, in_turn

from tests.builders import NOON, attempt, live_job, minutes, running
from tests.memory.edges import FOREVER
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

RULE = LossRule(non_finite=LossReaction.STOP)
NAMED = [{"Name": "train:acc", "Regex": "acc=(.*)"}, {"Name": "train:loss", "Regex": "loss=([0-9.]+)"}]
BAD = tuple(f"step={step} loss=nan" for step in (7, 8, 9))
WELL = tuple(f"step={step} loss=0.5" for step in (7, 8, 9))


@dataclass
class World:
    lines: tuple[str, ...] = BAD
    now: datetime = NOON
    logs_read: int = 0
    fails: bool = False
    before_write: Job | None = None
    """The job as somebody else writes it while its log is read."""
    tables: Tables = field(default_factory=Tables)

    def __post_init__(self) -> None:
        self.reader, self.store = MemoryReader(self.tables), MemoryJobStore(self.tables)

    def submit(self, request: Any) -> None:
        live = attempt("job1", training_since=NOON - minutes(30), secondary_status="Training")
        self.store.submit(live_job("job1", live=live), json.dumps(request).encode())

    def tail(self, training_job_name: str) -> tuple[str, ...]:
        self.logs_read += 1
        if self.fails:
            raise RuntimeError(training_job_name)
        if self.before_write is not None:
            self.store.commit([Change(before=self.job, after=self.before_write)], at=self.now)
        return self.lines

    @property
    def job(self) -> Job:
        return self.tables.jobs["job1"]

    @property
    def told(self) -> list[str]:
        """The kinds of the notices."""
        messages = self.store.messages("main", limit=99)
        notices = [message.notice for message in messages if message.kind is MessageKind.TELL]
        return [notice.kind.value for notice in notices if notice is not None]

    def run(self, rule: LossRule | None = RULE, *, after: timedelta = timedelta()) -> list[Exception]:
        """Run in each of the five minutes from then on, so that it is the job's turn once."""
        looks = LossLooks(logs=self, reader=self.reader, store=self.store, clock=lambda: self.now)
        self.now += after
        failures: list[Exception] = []
        for _ in range(5):
            failures += looks.run(self.reader.running("main"), rule, FOREVER)
            self.now += minutes(1)
        return failures


@pytest.fixture
def world() -> World:
    world = World()
    world.submit({"AlgorithmSpecification": {"MetricDefinitions": NAMED}})
    return world


def test_a_job_whose_loss_is_nan_is_warned_once_and_stopped_ten_minutes_later(world: World) -> None:
    assert (world.run(), world.job.state, world.told) == ([], JobState.RUNNING, ["Job Loss Warning"])
    assert (world.run(), world.job.state, world.told) == ([], JobState.RUNNING, ["Job Loss Warning"])
    world.run(after=minutes(5))
    assert (world.job.state, world.job.reason and world.job.reason.code) == ("stopping", "loss-not-finite")
    assert world.job.reason is not None
    assert world.job.reason.message == "train:loss is nan at step 7: it is not finite"
    assert world.told == ["Job Loss Warning"]


def test_where_the_policy_only_notifies_the_job_trains_on(world: World) -> None:
    for _ in range(9):
        world.run(LossRule())
    assert (world.job.state, world.told) == (JobState.RUNNING, ["Job Loss Warning"])


def test_without_the_rule_no_log_is_read(world: World) -> None:
    before = world.job
    assert (world.run(None), world.logs_read, world.job) == ([], 0, before)


def test_a_loss_that_recovers_is_not_stopped_and_a_new_breach_is_a_new_warning(world: World) -> None:
    world.run()
    world.lines = WELL
    world.run(after=minutes(30))
    assert world.job.state is JobState.RUNNING
    world.lines = BAD
    world.run()
    assert (world.job.state, world.told) == (JobState.RUNNING, ["Job Loss Warning"] * 2)


def test_a_loss_as_before_writes_nothing(world: World) -> None:
    world.lines = WELL
    world.run()
    before = world.job
    world.run()
    assert (world.job, world.logs_read) == (before, 2)


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param({}, id="no algorithm"),
        pytest.param({"AlgorithmSpecification": {}}, id="no definitions"),
        pytest.param({"AlgorithmSpecification": {"MetricDefinitions": NAMED[:1]}}, id="another metric"),
        pytest.param({"AlgorithmSpecification": {"MetricDefinitions": None}}, id="null"),
        pytest.param(
            {
                "AlgorithmSpecification": {
                    "MetricDefinitions": [{"Name": "train:loss", "Regex": "(?i)loss=(.*)"}]
                }
            },
            id="no expression",
        ),
        pytest.param(
            {"AlgorithmSpecification": {"MetricDefinitions": ["x", {"Name": "train:loss"}]}}, id="odd"
        ),
    ],
)
def test_a_job_without_a_readable_definition_of_the_metric_is_not_judged(request_: Any) -> None:
    world = World()
    world.submit(request_)
    before = world.job
    assert (world.run(), world.job) == ([], before)


@pytest.mark.parametrize(
    "lines", [(), ("loss=", "", "\x00"), ("loss=nan",) * 2, ("nan",) * 9, ("loss=1e5000x",) * 9]
)
def test_a_log_that_tells_too_little_changes_nothing(world: World, lines: tuple[str, ...]) -> None:
    before, world.lines = world.job, lines
    assert (world.run(), world.job) == ([], before)


def test_a_log_that_cannot_be_read_is_reported_and_read_at_the_next_turn(world: World) -> None:
    world.fails = True
    assert [str(error) for error in world.run()] == ["job1"]
    world.fails = False
    assert (world.run(), world.told) == ([], ["Job Loss Warning"])


def test_a_job_that_is_cancelled_while_its_log_is_read_stays_cancelled(world: World) -> None:
    world.before_write = steps.drained(world.job, "its pool is drained")
    world.run(LossRule(non_finite=LossReaction.STOP, warn_first=minutes(0)))
    assert (world.job.state, world.told) == (world.before_write.state, [])


def test_every_job_gets_its_turn_and_no_run_reads_more_logs_than_it_may() -> None:
    for count in (1, 7, 100, 333):
        live = [running(f"job{number}") for number in range(count)]
        turns = [in_turn(live, now=NOON + minutes(minute)) for minute in range(max(5, -(-count // 20)))]
        assert sorted(entry.name for turn in turns for entry in turn) == sorted(e.name for e in live)
        assert max(map(len, turns)) <= MOST_LOGS


def test_a_run_that_ends_early_does_not_always_leave_out_the_same_job() -> None:
    live = [running(f"job{number}") for number in range(10)]
    assert {in_turn(live, now=NOON + minutes(5 * cycle))[0].name for cycle in range(2)} == {"job0", "job5"}


def test_jobs_that_do_not_train_yet_have_no_turn() -> None:
    live = [running("a", training_since=None), running("b", state=JobState.STOPPING)]
    assert [in_turn(live, now=NOON + minutes(minute)) for minute in range(5)] == [[]] * 5
