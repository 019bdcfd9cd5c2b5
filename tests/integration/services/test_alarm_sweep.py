"""What ``reconcile`` makes of the alarms there are: over ports in memory, each test one run."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from trainmaster.core.errors import UnavailableError
from trainmaster.core.jobs.attempts import Attempt
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring import alarm_reactions
from trainmaster.core.monitoring.alarms import Alarm, AlarmState, alarms_of, names_of, wanted_of
from trainmaster.core.outbox.messages import MessageKind, OutboxMessage
from trainmaster.core.policy.governance import Governing, Idle, Reaction, Utilization, Watch
from trainmaster.services.alarm_events import IdleWatch
from trainmaster.services.alarm_sweep import AlarmSweep

from tests.builders import NOON, attempt, live_job, minutes, of
from tests.memory.edges import FOREVER, MemoryAlarms
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

GPU = "ml.g5.xlarge"
DOCUMENT = {"pools": [{"name": "main", "capacity": {GPU: 99}}], "idle": {}, "utilization": {}}
WATCH = Watch(idle=Idle(), utilization=Utilization())


def governed(watch: Watch) -> Governing:
    return Governing(idle=watch.idle, utilization=watch.utilization)


@dataclass
class World:
    tables: Tables = field(default_factory=Tables)
    alarms: MemoryAlarms = field(default_factory=MemoryAlarms)
    stack: str = "ml"
    reads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reader, self.store = MemoryReader(self.tables), MemoryJobStore(self.tables)
        self.policies = MemoryPolicyStore(self.tables)
        self.policies.put(DOCUMENT, pools=["main"], replaces=self.policies.current())
        watch = IdleWatch(
            alarms=self.alarms,
            reader=self.reader,
            store=self.store,
            policies=self.policies,
            clock=lambda: NOON,
            stack=self.stack,
        )
        self.sweep = AlarmSweep(
            alarms=self.alarms,
            idle_watch=watch,
            reader=self.reader,
            store=self.store,
            clock=lambda: NOON,
            stack=self.stack,
        )

    def watched(self, name: str = "a", hosts: int = 1, **live: Any) -> Job:
        """A job in training that has its alarms."""
        vector = of(hosts, GPU)
        wanted = wanted_of(vector, WATCH)
        values = {"training_since": NOON - minutes(60), "secondary_status": "Training"}
        one = live_job(
            name,
            entry_id=f"01{name}",
            vector=vector,
            live=attempt(name, **{"shape": Shape(vector=vector), "guarded": wanted.digest} | values | live),
        )
        self.store.submit(one, b"{}")
        self.alarms.put(alarms_of(name, wanted, WATCH, stack=self.stack))
        return one

    def run(self, watch: Watch = WATCH) -> list[Exception]:
        return list(self.sweep.run(self.sweep.read(), self.reader.running("main"), governed(watch), FOREVER))

    def live(self, name: str = "a") -> Attempt:
        one = self.tables.jobs[name].live
        assert one is not None
        return one

    def messages(self) -> tuple[OutboxMessage, ...]:
        return self.store.messages("-", limit=99)


@pytest.fixture
def world() -> World:
    return World()


def orphan(world: World, name: str) -> None:
    world.alarms.put([Alarm(name=name, description="", acts=True)])


def test_where_all_is_well_nothing_is_written(world: World) -> None:
    before = [world.watched("a"), world.watched("b", hosts=12)]
    assert world.run() == []
    assert [world.tables.jobs[one.name] for one in before] == before
    assert world.messages() == ()


def test_an_alarm_that_somebody_deleted_is_made_again(world: World) -> None:
    world.watched()
    world.alarms.delete(["trainmaster-ml-idle-a"])
    assert world.run() == []
    assert world.live().watch.monitored is None, "so the next pass makes them"


def test_a_part_that_somebody_deleted_is_missed_too(world: World) -> None:
    world.watched(hosts=12)
    world.alarms.delete(["trainmaster-ml-utilization-a.2"])
    world.run()
    assert world.live().watch.monitored is None


def test_an_alarm_that_is_newer_than_the_list_is_not_missed(world: World) -> None:
    world.watched()
    assert list(world.sweep.run({}, world.reader.running("main"), governed(WATCH), FOREVER)) == []
    assert world.live().watch.monitored is not None


def test_alarms_of_another_policy_are_left_to_the_pass(world: World) -> None:
    """It makes what is wanted now, and deletes the others."""
    world.watched(guarded="older")
    world.alarms.delete(["trainmaster-ml-idle-a"])
    world.run()
    assert world.live().watch.monitored == "older"


def test_alarms_without_a_live_attempt_leave_a_message_for_each_training_job(world: World) -> None:
    world.watched("a", hosts=12)
    for name in ("idle-gone.1", "utilization-gone", "idle-gone", "idle-gone.2", "idle-other"):
        orphan(world, f"trainmaster-ml-{name}")
    assert world.run() == []
    assert [(one.id, one.kind, one.alarms) for one in world.messages()] == [
        (
            "alarms#gone",
            MessageKind.DELETE_ALARMS,
            ("idle-gone", "utilization-gone", "idle-gone.1", "idle-gone.2"),
        ),
        ("alarms#other", MessageKind.DELETE_ALARMS, ("idle-other",)),
    ]


def test_an_alarm_of_an_earlier_policy_that_nobody_noted_is_deleted(world: World) -> None:
    """Made by a pass that died before its note; meanwhile the policy wants less."""
    world.watched(guarded=wanted_of(of(1, GPU), Watch(idle=Idle())).digest)
    world.run(Watch(idle=Idle()))
    assert [message.alarms for message in world.messages()] == [("utilization-a",)]


def test_alarms_of_an_attempt_that_has_none_yet_are_left_to_the_pass(world: World) -> None:
    world.watched(guarded=None)
    world.run()
    assert world.messages() == ()


def test_alarms_of_other_stacks_and_other_people_are_left_alone(world: World) -> None:
    for name in (
        "trainmaster-ml-2-idle-x",
        "trainmaster-mlx-idle-x",
        "trainmaster-ml-idle-idle-x",  # of stack ml-idle
        "trainmaster-ml-idle-utilization-x",
        "trainmaster-ml-disk-x",
        "operator-ml-idle-x",
    ):
        orphan(world, name)
    world.run()
    assert world.messages() == ()


def test_a_job_of_ours_whose_name_reads_like_another_stacks_is_swept(world: World) -> None:
    world.watched("idle-x")
    world.tables.jobs.pop("idle-x")  # its name stays taken
    world.run()
    assert [message.id for message in world.messages()] == ["alarms#idle-x"]


def test_the_end_of_a_watched_attempt_leaves_its_alarms_to_be_deleted(world: World) -> None:
    one = world.watched("a", hosts=12)
    assert one.live is not None
    over = alarm_reactions.monitored(one, wanted_of(of(12, GPU), WATCH))
    change = Change(before=one, after=over, ended=one.live)
    world.store.commit([change], at=NOON)
    (message,) = [
        one for one in world.store.messages("main", limit=9) if one.kind is MessageKind.DELETE_ALARMS
    ]
    assert message.alarms == names_of("a", hosts=12)


def test_one_alarm_that_cannot_be_read_keeps_nobody_else_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.watched("a")
    world.watched("b")
    for name in ("a", "b"):
        world.alarms.goes(f"trainmaster-ml-idle-{name}", AlarmState.ALARM, NOON)
    readings = world.sweep.read()
    reading = world.alarms.reading

    def broken(self: MemoryAlarms, name: str) -> Any:
        if name.endswith("-a"):
            raise UnavailableError("CloudWatch did not answer")
        return reading(name)

    monkeypatch.setattr(MemoryAlarms, "reading", broken)
    errors = list(world.sweep.run(readings, world.reader.running("main"), governed(WATCH), FOREVER))
    assert [str(error) for error in errors] == ["CloudWatch did not answer"]
    assert (world.live("a").watch.idle_since, world.live("b").watch.idle_since) == (None, NOON)


def test_an_alarm_of_either_kind_that_nobody_heard_of_is_noted(world: World) -> None:
    world.watched()
    world.alarms.goes("trainmaster-ml-utilization-a", AlarmState.ALARM, NOON - minutes(3))
    world.run()
    assert world.live().watch.underused_since == NOON - minutes(3)
    world.alarms.goes("trainmaster-ml-utilization-a", AlarmState.OK, NOON)
    world.run()
    assert world.live().watch.underused_since is None


def test_an_underused_job_is_warned_of_its_stop(world: World) -> None:
    utilization = Utilization(then=Reaction.STOP, warn_first=minutes(10))
    document = DOCUMENT | {"utilization": {"then": "stop", "warn_first": "10m"}}
    world.policies.put(document, pools=["main"], replaces=world.policies.current())
    watch = Watch(idle=Idle(), utilization=utilization)
    world.watched()
    world.alarms.goes("trainmaster-ml-utilization-a", AlarmState.ALARM, NOON - minutes(3))
    world.run(watch)
    assert world.live().watch.underused_stop_due == NOON + minutes(10)
    world.run(watch)
    assert world.tables.jobs["a"].state is JobState.RUNNING, "its time is not over"


def test_an_underused_job_is_stopped_when_its_time_is_over(world: World) -> None:
    since = NOON - minutes(13)
    world.watched(underused_since=since, underused_stop_due=NOON)
    world.alarms.goes("trainmaster-ml-utilization-a", AlarmState.ALARM, since)
    utilization = Utilization(then=Reaction.STOP, warn_first=minutes(13))
    world.run(Watch(idle=Idle(), utilization=utilization))
    job = world.tables.jobs["a"]
    assert (job.state, job.reason and job.reason.code) == (JobState.STOPPING, "underused")


@pytest.mark.parametrize(
    ("then", "due", "expected"),
    [
        pytest.param(Reaction.STOP, None, NOON + minutes(10), id="begins to stop idle jobs"),
        pytest.param(Reaction.NOTIFY, NOON + minutes(5), None, id="stops none any more"),
    ],
)
def test_a_policy_that_acts_otherwise_counts_for_jobs_that_are_idle(
    then: Reaction, due: datetime | None, expected: datetime | None, world: World
) -> None:
    world.watched(idle_since=NOON, stop_due=due)
    world.alarms.goes("trainmaster-ml-idle-a", AlarmState.ALARM, NOON)
    document = DOCUMENT | {"idle": {"then": then.value}}
    world.policies.put(document, pools=["main"], replaces=world.policies.current())
    world.run(Watch(idle=Idle(then=then), utilization=Utilization()))
    assert (world.live().watch.idle_since, world.live().watch.stop_due) == (NOON, expected)


def test_what_is_noted_already_is_not_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.watched("idle", idle_since=NOON, stop_due=NOON + minutes(10))
    world.watched("busy")
    world.alarms.goes("trainmaster-ml-idle-idle", AlarmState.ALARM, NOON)
    readings = world.sweep.read()
    monkeypatch.delattr(MemoryAlarms, "reading")
    assert list(world.sweep.run(readings, world.reader.running("main"), governed(WATCH), FOREVER)) == []
