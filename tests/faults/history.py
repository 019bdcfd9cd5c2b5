"""One world and the dice that drive it: users, SageMaker, admins, crashes and lost messages."""

import random
from collections.abc import Callable
from typing import Any

from trainmaster.core.jobs.instances import Vector
from trainmaster.core.jobs.model import Job, JobState

from tests.builders import A, B, minutes
from tests.integration.cloud import AnswerLost
from tests.integration.messages import USER
from tests.integration.world import Crash, World

STEPS = 50
SETTLED = 60
"""Rounds in which everything that was ever submitted must come to its end once faults stop."""
TEAMS = ("red", "blue")
AFTER_A_STOP = frozenset({JobState.STOPPING, JobState.STOPPED, JobState.COMPLETED, JobState.FAILED})


def policy(a: int = 3) -> dict[str, Any]:
    """Quotas and borrowing, warm pools, spot, prices, and budgets that are never spent."""
    pool = {
        "name": "main",
        "capacity": {A: a, B: 1},
        "spot_capacity": {A: 1},
        "quotas": {team: {"nominal": {A: 1}, "borrowing_limit": {A: 2}} for team in TEAMS},
        "warm_pool": {"keep_alive": "10m", "max_idle": "30m"},
    }
    budget = {"usd_per_month": 100_000, "at_limit": "wait"}
    teams = [{"name": name, "principals": [USER], "roles": "any", "budget": budget} for name in TEAMS]
    return {"pools": [pool], "teams": teams, "prices": {A: 1.25, B: 40}}


POLICY = policy()
SPOT = {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200}
CHOICE = {
    "InstancePreferences": [{"InstanceType": A, "InstanceCount": 1}, {"InstanceType": B, "InstanceCount": 1}],
    "VolumeSizeInGB": 1,
}


class History:
    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.names: list[str] = []
        self.stopped: set[str] = set()
        """Jobs whose stop was accepted."""
        self.taken: Vector = {}
        """Used and warm after the last step: where the capacity was lowered it may be above it."""
        self.steps: list[Callable[[], None]] = [
            *[self.submit] * 3,
            *[self.pass_] * 4,
            *[self.train] * 2,
            *[self.end] * 3,
            *[self.minute] * 2,
            self.hear,
            self.cancel,
            self.hold_or_release,
            self.prioritise,
            self.crash,
            self.refuse,
            self.lose_an_answer,
            self.limit_the_account,
            self.change_the_capacity,
            self.pause_or_resume,
        ]

    def play(self) -> None:
        for _ in range(STEPS):
            self.dice.choice(self.steps)()
            self.check()

    def check(self) -> None:
        bound = self.world.capacity()
        for capacity, count in self.taken.items():
            bound[capacity] = max(bound.get(capacity, 0), count)
        self.taken = self.world.check(*self.names, capacity=bound)
        came_back = [name for name in self.stopped if self.world.job(name).state not in AFTER_A_STOP]
        assert came_back == [], "a user's stop is final"

    # ---- people

    def submit(self) -> None:
        name = f"job{len(self.names)}"
        count = self.dice.choice([1, 1, 2])
        kinds: list[dict[str, Any]] = [
            {"ResourceConfig": {"InstanceType": A, "InstanceCount": count, "VolumeSizeInGB": 1}},
            {"ResourceConfig": {"InstanceType": A, "InstanceCount": count, "VolumeSizeInGB": 1}},
            {"ResourceConfig": {"InstanceType": B, "InstanceCount": 1, "VolumeSizeInGB": 1}},
            {"ResourceConfig": CHOICE},
            {"EnableManagedSpotTraining": True, "StoppingCondition": SPOT},
        ]
        tags = {"priority": str(self.dice.randint(0, 4)), "team": self.dice.choice(TEAMS)}
        answer = self.world.submit(
            name,
            Tags=[{"Key": key, "Value": text} for key, text in tags.items()],
            **self.dice.choice(kinds),
        )
        assert answer["status"] == 201, answer
        self.names.append(name)

    def cancel(self) -> None:
        if self.names:
            name = self.dice.choice(self.names)
            status = self.world.cancel(name)
            assert status in (202, 409)
            if status == 202:
                self.stopped.add(name)

    def hold_or_release(self) -> None:
        if self.names:
            name = self.dice.choice(self.names)
            held = self.world.job(name).state is not JobState.HELD
            assert self.world.patch(name, held=held)["status"] in (200, 409)

    def prioritise(self) -> None:
        if self.names:
            answer = self.world.patch(self.dice.choice(self.names), priority=self.dice.randint(0, 9))
            assert answer["status"] in (200, 409)

    def change_the_capacity(self) -> None:
        assert self.world.api("PUT", "/policy", policy(self.dice.choice([2, 3, 3])))["status"] == 200

    def pause_or_resume(self) -> None:
        paused = self.dice.random() < 0.3
        assert self.world.api("PUT", "/policy/paused", {"paused": paused})["status"] == 200

    # ---- SageMaker

    def train(self) -> None:
        for name in self._some_live():
            self.world.sagemaker.train(name)
            self.world.tell(name)

    def end(self) -> None:
        for name in self._some_live():
            stopping = self.world.sagemaker.jobs[name].status == "Stopping"
            ends = (
                ["Stopped", "Stopped", "Completed"]
                if stopping
                else ["Completed", "Completed", "AlgorithmError: no", "CapacityError: none"]
            )
            status = self.dice.choice(ends)
            reason = status if ":" in status else None
            self.world.sagemaker.end(name, "Failed" if reason else status, reason=reason)
            for _ in range(self.dice.choice([0, 1, 1, 2])):  # the event is lost, comes once, comes twice
                self.world.tell(name)

    def hear(self) -> None:
        """News of any training job there ever was."""
        if self.world.sagemaker.jobs:
            self.world.tell(self.dice.choice(sorted(self.world.sagemaker.jobs)))

    def refuse(self) -> None:
        code = self.dice.choice(["ThrottlingException", "ResourceLimitExceeded", "ValidationException"])
        operation = self.dice.choice(["CreateTrainingJob", "CreateTrainingJob", "UpdateTrainingJob"])
        self.world.sagemaker.refuse[operation] = [(code, 400)] * 3

    def limit_the_account(self) -> None:
        limits = self.world.sagemaker.limits
        if limits:
            limits.clear()
        else:
            limits[A] = self.dice.choice([1, 2])

    # ---- the plane

    def pass_(self) -> None:
        self.world.wake()

    def minute(self) -> None:
        self.world.now += minutes(self.dice.choice([1, 2, 7]))
        self.world.reconcile()

    def crash(self) -> None:
        act = self.dice.choice([self.world.wake, self.world.reconcile])
        self.world.dies(act, Crash(self.dice.randint(0, 30), self.dice.choice(["before", "after"])))

    def lose_an_answer(self) -> None:
        """For good (three tries), or only for the first try."""
        operation = self.dice.choice(["CreateTrainingJob", "UpdateTrainingJob", "StopTrainingJob"])
        self.world.wire.strike(operation, self.dice.choice([1, 3]), AnswerLost())

    # ---- the end

    def comes_to_an_end(self) -> list[Job]:
        """No more faults: every live training job completes or stops, nobody says so but the reconciler."""
        world = self.world
        world.sagemaker.refuse.clear()
        world.sagemaker.limits.clear()
        world.wire.heal()
        world.api("PUT", "/policy", POLICY)
        world.api("PUT", "/policy/paused", {"paused": False})
        for name in self.names:
            if world.job(name).state is JobState.HELD:
                world.patch(name, held=False)
        for _ in range(SETTLED):
            for name, job in world.sagemaker.live().items():
                world.sagemaker.end(name, "Stopped" if job.status == "Stopping" else "Completed")
            world.a_minute_passes()
            world.now += minutes(10)  # back-offs end
            if all(world.job(name).is_final for name in self.names):
                break
        self.check()
        return [world.job(name) for name in self.names]

    def _some_live(self) -> list[str]:
        live = sorted(self.world.sagemaker.live())
        return self.dice.sample(live, min(len(live), self.dice.choice([1, 2])))
