"""Seeded random schedules in which people start training jobs without the queue, under changing policies."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from trainmaster.core.jobs.model import JobState
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.rules.violation import Outcome, ViolationRecord

from tests.bodies import body
from tests.builders import A, minutes
from tests.histories.drawn import document_of
from tests.histories.history import History
from tests.histories.playing import STAGE, played
from tests.histories.world import World

pytestmark = pytest.mark.thorough

NO_POOL = "ml.c.xlarge"
BLOCK, MANY, STEPS, MOST_UNMANAGED = 40, 400, 220, 5
THEN = ("allow", "audit", "adopt", "adopt", "stop")
RULES = {"network_isolation": {"mode": "enforce"}}
ROUNDS = 6


def unmanaged_document(dice: random.Random) -> dict[str, Any]:
    return document_of(dice) | {"unmanaged_jobs": {"then": dice.choice(THEN)}, "rules": RULES}


@dataclass(slots=True)
class RunsUnmanaged(History):
    """What a history is, with training jobs that nobody submitted."""

    outside: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Requests of the unmanaged jobs."""
    outcomes: set[Outcome] = field(default_factory=set)

    def __post_init__(self) -> None:
        History.__post_init__(self)
        self.world = World(document=unmanaged_document(self.dice), stage=self.stage)
        self.moves = (
            *self.moves,
            *[self.start_outside] * 4,
            *[self.unmanaged_is_heard] * 8,
            *[self.pass_over_unmanaged] * 4,
            *[self.reconcile] * 2,
            *[self.change_then] * 2,
            self.rights_change,
        )

    def _request(self, name: str) -> dict[str, Any]:
        return History._request(self, name) | {"EnableNetworkIsolation": True}

    # ---- what may happen

    def start_outside(self) -> None:
        if len(self.outside) >= MOST_UNMANAGED:
            return
        name = f"stray{len(self.outside)}"
        resources = {
            "InstanceType": self.dice.choice([A, A, NO_POOL]),
            "InstanceCount": self.dice.choice([1, 1, 2]),
            "VolumeSizeInGB": 1,
        }
        request = body(TrainingJobName=name, Tags=None, ResourceConfig=resources)
        request["EnableNetworkIsolation"] = self.dice.random() < 0.75
        self.outside[name] = request
        self.world.watch.outside.add(name)
        self.world.sagemaker.run_outside(request)
        self.tell(f"somebody starts {name}")

    def unmanaged_is_heard(self) -> None:
        """Early, late, twice, or never."""
        if self.outside:
            name = self.dice.choice(sorted(self.outside))
            self.start(f"event of {name}", lambda: self.world.hear_of_unmanaged(name))

    def pass_over_unmanaged(self) -> None:
        self.start("pass over unmanaged jobs", lambda: self.world.run_pass(UNMANAGED))

    def change_then(self) -> None:
        then = self.dice.choice(THEN)
        document = {**self.world.document, "unmanaged_jobs": {"then": then}}
        self.start(f"unmanaged jobs: {then}", lambda: self.world.change_policy(document))

    def rights_change(self) -> None:
        self.world.sagemaker.denies_stops = self.dice.random() < 0.3

    def meddle(self) -> None:
        """People have rights of their own."""
        denied, self.world.sagemaker.denies_stops = self.world.sagemaker.denies_stops, False
        History.meddle(self)
        self.world.sagemaker.denies_stops = denied

    # ---- what must hold

    def look(self) -> None:
        """Nobody is stopped whom nobody has judged; nobody is adopted twice."""
        for name in self.outside:
            training_job, job = self.world.sagemaker.jobs.get(name), self.world.tables.jobs.get(name)
            if training_job is None:
                continue
            record = self.record(name)
            if job is not None:
                assert job.spec.adopted
                assert not job.spec.preemptible
            if record is not None:
                self.outcomes.add(record.outcome)
            adopted = job is not None
            assert adopted is (record is not None and record.outcome is Outcome.ADOPTED), f"{name}: {record}"

    def record(self, name: str) -> ViolationRecord | None:
        found = [one for (_, known), one in self.world.tables.violations.items() if known == name]
        assert len(found) <= 1, found
        return found[0] if found else None

    def settle(self) -> None:
        """Nothing goes wrong any more: the sweep finds everybody, and what was decided is done."""
        self.finish_all()
        world = self.world
        world.sagemaker.refuse, world.sagemaker.lose_answers = [], 0
        world.sagemaker.denies_stops = False
        for _ in range(ROUNDS):
            world.now += minutes(5)
            world.now = world.now.replace(minute=world.now.minute // 5 * 5)
            for act in self.settling():
                self.stage.finish(self._quiet(act))
            self.look()
        for name, request in self.outside.items():
            self._is_governed(name, request)
        assert not world.tables.messages, "a message that is never done"
        History.settle(self)

    def settling(self) -> tuple[Callable[[], Any], ...]:
        return (*History.settling(self), lambda: self.world.run_pass(UNMANAGED))

    def _is_governed(self, name: str, request: dict[str, Any]) -> None:
        """As the policy in force says, whatever was lost on the way."""
        training_job = self.world.sagemaker.jobs.get(name)
        then = self.world.tables.policy.document["unmanaged_jobs"]["then"]
        if training_job is None or training_job.status != "InProgress" or then == "allow":
            return
        job, record = self.world.tables.jobs.get(name), self.record(name)
        assert record is not None, f"nobody has found {name}"
        if job is not None or record.outcome is Outcome.NOT_STOPPED:
            return
        breaks = not request["EnableNetworkIsolation"]
        in_pool = request["ResourceConfig"]["InstanceType"] == A
        assert then != "adopt", f"{name} is neither adopted nor stopped"
        assert then == "audit" or not (breaks or in_pool), f"{name} runs on"


def test_unmanaged_are_governed_and_counted_whatever_happens() -> None:
    assert _play_block(0) == set(Outcome), "the dice must come to the case"


@pytest.mark.long
@pytest.mark.parametrize("first", range(BLOCK, MANY, BLOCK))
def test_they_are_in_many_more_histories(first: int) -> None:
    # Of ten blocks one has no stop that AWS denies: a change of the planner changes what is drawn.
    assert _play_block(first) >= set(Outcome) - {Outcome.NOT_STOPPED}, "the dice must come to the case"


def _play_block(first: int) -> set[Outcome]:
    """Play histories, and return what became of their unmanaged jobs."""
    histories = [
        played(RunsUnmanaged(seed=seed, stage=STAGE, steps=STEPS)) for seed in range(first, first + BLOCK)
    ]
    adopted = [job for one in histories for job in one.world.tables.jobs.values() if job.spec.adopted]
    assert {job.spec.pool for job in adopted} == {"main", UNMANAGED}
    assert sum(job.attempt > 0 for job in adopted) >= 1, "the dice must come to the case"
    assert {JobState.COMPLETED, JobState.STOPPED} <= {job.state for job in adopted}
    return set().union(*(history.outcomes for history in histories))
