"""Seeded random histories under the real handlers: whatever happens, the invariants hold."""

import random
from collections.abc import Callable

import pytest
from trainmaster.jobs import Job

from tests.builders import A, minutes
from tests.integration.world import Crash, World

NewWorld = Callable[[], World]
STEPS = 40
SETTLED = 60
"""Rounds in which everything that was ever submitted must come to its end once faults stop."""


class History:
    """One world and the dice that drive it."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.dice = random.Random(seed)
        self.names: list[str] = []
        self.steps = (
            self.submit,
            self.submit,
            self.pass_,
            self.pass_,
            self.train,
            self.end,
            self.end,
            self.hear,
            self.cancel,
            self.minute,
            self.crash,
            self.refuse,
        )

    def play(self) -> None:
        for _ in range(STEPS):
            self.dice.choice(self.steps)()
            self.world.check(*self.names)

    def submit(self) -> None:
        name = f"job{len(self.names)}"
        wide = {"InstanceType": A, "InstanceCount": self.dice.choice([1, 1, 2]), "VolumeSizeInGB": 1}
        answer = self.world.submit(name, priority=self.dice.randint(0, 4), ResourceConfig=wide)
        assert answer["status"] == 201
        self.names.append(name)

    def pass_(self) -> None:
        self.world.ring()

    def train(self) -> None:
        for name in self._some_live():
            self.world.sagemaker.train(name)
            self.world.tell(name)

    def end(self) -> None:
        for name in self._some_live():
            stopping = self.world.sagemaker.jobs[name].status == "Stopping"
            ends = (
                ["Stopped", "Stopped", "Completed"] if stopping else ["Completed", "Failed", "CapacityError"]
            )
            status = self.dice.choice(ends)
            reason = "CapacityError: none" if status == "CapacityError" else None
            self.world.sagemaker.end(name, "Failed" if reason else status, reason=reason)
            for _ in range(self.dice.choice([0, 1, 1, 2])):  # the event is lost, comes once, comes twice
                self.world.tell(name)

    def hear(self) -> None:
        """News of any training job there ever was."""
        if self.world.sagemaker.jobs:
            self.world.tell(self.dice.choice(sorted(self.world.sagemaker.jobs)))

    def cancel(self) -> None:
        if self.names:
            assert self.world.api("DELETE", f"/jobs/{self.dice.choice(self.names)}")["status"] in (202, 409)

    def minute(self) -> None:
        self.world.now += minutes(self.dice.choice([1, 2, 7]))
        self.world.reconcile()

    def crash(self) -> None:
        act = self.dice.choice([self.world.ring, self.world.reconcile])
        self.world.dies(act, Crash(self.dice.randint(0, 25), self.dice.choice(["before", "after"])))

    def refuse(self) -> None:
        code = self.dice.choice(["ThrottlingException", "ResourceLimitExceeded", "ValidationException"])
        self.world.sagemaker.refuse["CreateTrainingJob"] = [(code, 400)]

    def comes_to_an_end(self) -> list[Job]:
        """No more faults: every live training job completes or stops, nobody says so but the reconciler."""
        self.world.sagemaker.refuse.clear()
        for _ in range(SETTLED):
            for name, job in self.world.sagemaker.live().items():
                self.world.sagemaker.end(name, "Stopped" if job.status == "Stopping" else "Completed")
            self.world.a_minute_passes()
            self.world.now += minutes(10)  # back-offs end
            if all(self.world.job(name).is_final for name in self.names):
                break
        self.world.check(*self.names)
        return [self.world.job(name) for name in self.names]

    def _some_live(self) -> list[str]:
        live = sorted(self.world.sagemaker.live())
        return self.dice.sample(live, min(len(live), self.dice.choice([1, 2])))


def _play(new_world: NewWorld, seed: int) -> None:
    history = History(new_world(), seed)
    try:
        history.play()
        left = [f"{job.name} is {job.state}" for job in history.comes_to_an_end() if not job.is_final]
        assert left == []
    except BaseException:
        print(f"seed {seed}")  # noqa: T201  to play it again
        raise


@pytest.mark.parametrize("seed", range(3))
def test_a_random_history_keeps_the_invariants(seed: int, new_world: NewWorld) -> None:
    _play(new_world, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 125))
def test_many_random_histories_keep_the_invariants(seed: int, new_world: NewWorld) -> None:
    _play(new_world, seed)
