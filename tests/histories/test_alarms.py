"""Seeded random schedules of jobs on GPUs whose alarms go off, are lost, deleted and refused."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest
from trainmaster.core.errors import AlarmQuotaError, UnavailableError
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.monitoring.alarm_reactions import warning_of
from trainmaster.core.monitoring.alarms import (
    AlarmKind,
    AlarmState,
    Watched,
    alarms_of,
    wanted_of,
    watched_by,
)
from trainmaster.core.policy import UNMANAGED, parse_policy

from tests.builders import minutes
from tests.histories.history import History
from tests.histories.playing import STAGE, played
from tests.histories.world import POOL, World

pytestmark = pytest.mark.thorough

GPU = "ml.g5.xlarge"
CODES = {
    AlarmKind.IDLE: ("idle", "idle-requeue"),
    AlarmKind.UTILIZATION: ("underused", "underused-requeue"),
}
ROUNDS = 4
"""Of a quarter of an hour each, in which alarms must come to rest once nothing goes wrong any more."""
BLOCK, MANY, STEPS = 40, 400, 400
STATES = (*[AlarmState.ALARM] * 5, AlarmState.OK, AlarmState.INSUFFICIENT_DATA)


def document_of(dice: random.Random) -> dict[str, Any]:
    warn_first = dice.choice(["0s", "2m", "10m"])
    document: dict[str, Any] = {"pools": [{"name": POOL, "capacity": {GPU: 12}}]}
    if dice.random() < 0.95:
        document["idle"] = {"then": dice.choice(["stop", "requeue", "notify"]), "warn_first": warn_first}
    if dice.random() < 0.8:
        then = dice.choice(["stop", "requeue", "notify"])
        document["utilization"] = {"for": dice.choice(["30m", "1h"]), "then": then, "warn_first": warn_first}
    return document


@dataclass(slots=True)
class Watching(History):
    """What a history is, on GPUs, with what may happen to alarms."""

    dues: dict[tuple[str, AlarmKind], datetime] = field(default_factory=dict)
    """By training job and kind of alarm: the time of the stop that its owner was told."""
    stops: Counter[AlarmKind] = field(default_factory=Counter)
    alarm_ends: int = 0
    """Alarms that were deleted because their attempt was over."""

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.world = World(document=document_of(self.dice), stage=self.stage)
        self.moves = (
            *[self.submit] * 3,
            *[self.answer_the_door] * 8,
            *[self.deliver] * 4,
            *[self.train] * 4,
            self.end,
            *[self.reconcile] * 5,
            self.cancel,
            *[self.time_passes] * 3,
            *[self.alarm_changes] * 4,
            self.alarm_is_deleted,
            self.alarms_are_refused,
            self.change_policy,
            self.sweep_unmanaged,
        )

    def _request(self, name: str) -> dict[str, Any]:
        hosts = self.dice.choice([1, 1, 2, 11])
        resources = {"InstanceType": GPU, "InstanceCount": hosts, "VolumeSizeInGB": 1}
        return History._request(self, name) | {
            "ResourceConfig": resources,
            "EnableManagedSpotTraining": False,
            "StoppingCondition": {"MaxRuntimeInSeconds": 86_400},
        }

    # ---- what may happen

    def alarm_changes(self) -> None:
        """Its message is lost, comes once, or twice; late, too."""
        acting = [name for name in self.world.alarms.alarms if "." not in name]
        if not acting:
            return
        name = self.dice.choice(sorted(acting))
        state = self.dice.choice(STATES)
        self.world.alarms.goes(name, state, self.world.now)
        self.tell(f"{name} is {state}")
        found = watched_by(name, stack="trainmaster")
        assert found is not None
        for _ in range(self.dice.choice([0, 1, 1, 2])):
            self._message(found)

    def _message(self, watched: Watched) -> None:
        self.start(f"alarm of {watched.training_job_name}", lambda: self.world.hear_alarm(watched))

    def alarm_is_deleted(self) -> None:
        """By somebody who tidies up."""
        names = sorted(self.world.alarms.alarms)
        if names and self.dice.random() < 0.5:
            self.world.alarms.delete([self.dice.choice(names)])

    def alarms_are_refused(self) -> None:
        self.world.alarms.refuses = self.dice.choice(
            [None, None, AlarmQuotaError("no more"), UnavailableError("Throttling")]
        )

    def change_policy(self) -> None:
        document = document_of(self.dice)
        self.start("another policy", lambda: self.world.change_policy(document))

    def sweep_unmanaged(self) -> None:
        self.start("pass over unmanaged jobs", lambda: self.world.run_pass(UNMANAGED))

    # ---- what must hold

    def look(self) -> None:
        """Nobody is stopped for GPUs who was not told of that very time, ``warn_first`` before it."""
        for job in self.world.tables.jobs.values():
            self._note(job)

    def _note(self, job: Job) -> None:
        live = job.live
        if live is None:
            return
        name = live.training_job_name
        for kind in AlarmKind:
            warned = warning_of(live.watch, kind)
            if job.state is JobState.RUNNING:
                self.dues.pop((name, kind), None)
                if warned.stop_due is not None:
                    self.dues[name, kind] = warned.stop_due
            elif job.reason is not None and job.reason.code in CODES[kind] and (name, kind) in self.dues:
                due = self.dues.pop((name, kind))
                assert due <= self.world.now, f"{name} is stopped before {due}"
                assert warned.since is not None
                self.stops[kind] += 1

    def settle(self) -> None:
        """Nothing goes wrong any more: alarms are those of the jobs that train, then none."""
        self.finish_all()
        self.world.sagemaker.refuse, self.world.sagemaker.lose_answers = [], 0
        self.world.alarms.refuses = None
        self._rounds()
        assert set(self.world.alarms.alarms) == self._wanted()
        had = len(self.world.alarms.alarms)
        for name, training_job in self.world.sagemaker.live().items():
            self._end(name, "Stopped" if training_job.status == "Stopping" else "Completed")
        for job in self.world.tables.jobs.values():
            self.world.cancel(job.name)
        self._rounds()
        assert self.world.alarms.alarms == {}
        self.alarm_ends += had

    def _rounds(self) -> None:
        acts: list[Callable[[], None]] = [
            self.world.reconcile,
            self.world.run_pass,
            lambda: self.world.run_pass(UNMANAGED),
        ]
        for _ in range(ROUNDS):
            self.world.now += minutes(16)
            for act in acts:
                self.stage.finish(self._quiet(act))
            self.look()

    def _wanted(self) -> set[str]:
        """By the policy, for every attempt in Training."""
        watch = parse_policy(self.world.tables.policy.document).governing.watch
        found: set[str] = set()
        for job in self.world.tables.jobs.values():
            live = job.live
            if live is None or live.training_since is None or job.state is not JobState.RUNNING:
                continue
            wanted = wanted_of(live.vector, watch)
            names = alarms_of(live.training_job_name, wanted, watch, stack="trainmaster")
            found |= {alarm.name for alarm in names}
        return found | self._of_those_that_stop()

    def _of_those_that_stop(self) -> set[str]:
        """Theirs go with them."""
        stopping = {
            job.live.training_job_name
            for job in self.world.tables.jobs.values()
            if job.live is not None and job.state is not JobState.RUNNING
        }
        kept = self.world.alarms.alarms
        read = {name: watched_by(name, stack="trainmaster") for name in kept}
        return {name for name, one in read.items() if one is not None and one.training_job_name in stopping}


def test_every_attempt_in_training_has_its_alarms_and_nothing_else_has() -> None:
    histories = _played_block(0)
    for kind in AlarmKind:
        assert sum(history.stops[kind] for history in histories) >= 1, "the dice must come to the case"


@pytest.mark.long
@pytest.mark.parametrize("first", range(BLOCK, MANY, BLOCK))
def test_they_do_in_many_more_histories(first: int) -> None:
    _played_block(first)


def _played_block(first: int) -> list[Watching]:
    histories = [
        played(Watching(seed=seed, stage=STAGE, steps=STEPS)) for seed in range(first, first + BLOCK)
    ]
    # A change of the planner changes what is drawn: of ten blocks the least had 14 ends, the mean 35, and now
    # and then one has no stop of one kind.
    assert sum(history.stops.total() for history in histories) >= 1, "the dice must come to the case"
    assert sum(history.alarm_ends for history in histories) >= 7, "the dice must come to the case"
    return histories
