"""AWS serves every job but one, for which others are stopped: what such an outside does to a plane."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from trainmaster.api.jobs import show_job
from trainmaster.api.request_context import Answer

from tests.builders import A, minutes
from tests.faults.planes import run
from tests.histories.world import World
from tests.integration.messages import request

URGENT = "urgent"
CAPACITY_ERROR = "CapacityError: Unable to provision requested ML compute capacity."
Outcome = Callable[["Market", str], None]
"""What becomes of a training job of the urgent one; nothing where it may go on."""


def width(instances: int, instance_type: str = A) -> dict[str, Any]:
    return {
        "ResourceConfig": {"InstanceType": instance_type, "InstanceCount": instances, "VolumeSizeInGB": 10}
    }


def tagged(priority: int = 0, team: str | None = None, **more: str) -> dict[str, Any]:
    tags = {"priority": str(priority), **({"team": team} if team else {}), **more}
    return {"Tags": [{"Key": key, "Value": content} for key, content in tags.items()]}


def fails(reason: str) -> Outcome:
    return lambda market, name: market.ends(name, "Failed", reason=reason)


@dataclass(slots=True, kw_only=True)
class Market:
    """Everything that is asked for trains at once, but for the urgent job's attempts."""

    world: World
    outcome: Outcome = field(default_factory=lambda: fails(CAPACITY_ERROR))
    is_served: bool = False
    """AWS serves the urgent job, too."""
    urgent_ends: list[datetime] = field(default_factory=list)
    """When an attempt of the urgent job got nowhere."""
    stopped_at: list[datetime] = field(default_factory=list)
    """When each StopTrainingJob came."""

    def submit(self, name: str, **fields: Any) -> None:
        answer = self.world.submit(request(name, **fields))
        assert isinstance(answer, Answer), answer
        assert answer.status in (200, 201), answer

    def cancel(self, name: str) -> None:
        assert isinstance(self.world.cancel(name), Answer)

    def settle(self) -> None:
        """Let the plane and SageMaker do all there is to do at this instant."""
        for _ in range(20):
            run(self.world, self.world.reconcile)
            run(self.world, self.world.run_pass)
            if not self._moves():
                return
        raise AssertionError("it never comes to rest")

    def let_pass(self, time: timedelta) -> None:
        """Minute by minute."""
        end = self.world.now + time
        while self.world.now < end:
            self.world.now = min(end, self.world.now + minutes(1))
            self.settle()

    def ends(self, name: str, status: str, **fields: Any) -> None:
        self.world.sagemaker.end(name, status, **fields)
        run(self.world, lambda: self.world.hear(name))

    def trains(self, name: str) -> None:
        self.world.sagemaker.train(name)
        run(self.world, lambda: self.world.hear(name))

    @property
    def stops(self) -> int:
        return sum(job.stops for job in self.world.sagemaker.jobs.values())

    def view(self, name: str) -> Mapping[str, Any]:
        answer = self.world._call(lambda context: show_job(context, name))
        assert isinstance(answer, Answer), answer
        assert not isinstance(answer.body, str)
        return answer.body

    def state(self, name: str) -> str:
        return self.world.job(name).state.value

    def events(self, kind: str) -> list[Mapping[str, Any]]:
        return [detail for told, detail in self.world.notifier.told if told == kind]

    def _moves(self) -> bool:
        self.stopped_at += [self.world.now] * (self.stops - len(self.stopped_at))
        moved = [self._moves_one(name) for name in list(self.world.sagemaker.live())]
        return any(moved)

    def _moves_one(self, name: str) -> bool:
        job = self.world.sagemaker.jobs[name]
        if job.status == "Stopping":
            self.ends(name, "Stopped")
        elif job.training_since is not None:
            return False
        elif name.startswith(URGENT) and not self.is_served:
            self.outcome(self, name)
            if job.is_live:
                return False
            self.urgent_ends.append(self.world.now)
        else:
            self.trains(name)
        return True
