"""I16: whatever AWS serves and refuses, no futile preemption is repeated before its wait is over."""

import random
from collections import Counter
from typing import Any

from tests.builders import A, minutes
from tests.faults.planes import plane, run
from tests.faults.thrashing import CAPACITY_ERROR, Market, tagged, width

STEPS, SEEDS = 50, 10
SERVICE = "InternalServerError: We encountered an internal error. Please try again."
LONG: dict[str, Any] = {"StoppingCondition": {"MaxRuntimeInSeconds": 86_400}}
POLICY: dict[str, Any] = {
    "pools": [
        {
            "name": "main",
            "capacity": {A: 5},
            "preemption": {"cost": {"enabled": False}, "max_per_job": 1000},
            "warm_pool": {"keep_alive": "0s", "retain": "0s"},
        }
    ],
    "recovery": {"max_retries": 9},
}


class Weather:
    """AWS in moods: some attempts train, some find no instances, some wait, jobs come and go."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.market = Market(world=plane(POLICY))
        self.serves_large = False
        self.seen: Counter[str] = Counter()

    def play(self) -> None:
        for number in range(4):
            self.market.submit(f"small-{number}", **width(1), **LONG, **tagged(1))
        for number in range(STEPS):
            self.step(number)
            self.look()

    def step(self, number: int) -> None:
        dice, world = self.dice, self.market.world
        if dice.random() < 0.3:
            size, priority = dice.choice([1, 2, 3, 4]), dice.choice([1, 500])
            self.market.submit(f"job-{number}", **width(size), **LONG, **tagged(priority))
        if dice.random() < 0.15:
            self.serves_large = not self.serves_large
        if dice.random() < 0.1:
            name = dice.choice([one.name for one in world.tables.jobs.values() if one.is_waiting] or [""])
            if name:
                self.market.cancel(name)
        world.now += minutes(dice.choice([0.5, 1, 2, 5, 14, 40]))

    def look(self) -> None:
        world = self.market.world
        for _ in range(3):
            run(world, world.reconcile)
            run(world, world.run_pass)
            for name in list(world.sagemaker.live()):
                self.moves(name)
            world.now += minutes(0.1)

    def moves(self, name: str) -> None:
        """One training job goes on as AWS feels."""
        dice, job = self.dice, self.market.world.sagemaker.jobs[name]
        if job.status == "Stopping":
            self.market.ends(name, "Stopped")
        elif job.training_since is not None:
            if dice.random() < 0.02:
                self.market.ends(name, "Completed")
        elif sum(job.vector.values()) == 1 or self.serves_large:
            self.market.trains(name)
        elif dice.random() < 0.8:
            self.market.ends(name, "Failed", reason=dice.choice([CAPACITY_ERROR, CAPACITY_ERROR, SERVICE]))


def test_no_preemption_is_repeated_before_its_wait_is_over() -> None:
    """Each commit is judged by what was seen to happen, not by what the jobs have noted of it."""
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        weather = Weather(seed)
        weather.play()
        judge, jobs = weather.market.world.watch.futile, weather.market.world.tables.jobs.values()
        counts["early"] += judge.early
        counts["in time"] += judge.in_time
        counts["twice"] += sum(job.futile is not None and job.futile.count > 1 for job in jobs)
        for job in jobs:
            known = judge.chains.get(job.name)
            if job.is_waiting:
                assert (job.futile.count if job.futile else 0) == (known.futile if known else 0), job.name
    assert min(counts["early"], counts["in time"], counts["twice"]) >= 3, counts
