"""Histories in the harsh world: calls of SageMaker take time and may be throttled, reads come late."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from trainmaster.core.errors import AccountLimitError, UnavailableError
from trainmaster.core.jobs.observations import Listed, Observation
from trainmaster.core.request.request import Launcher

from local.worlds import HARSH, Rates, World, capacity_type, changed, keeps_warm, latency, refusal
from tests.builders import A, B
from tests.histories import world as plane
from tests.histories.history import LIFE, History
from tests.histories.stage import Stage
from tests.memory.sagemaker import MemorySageMaker, TrainingJob


@dataclass(slots=True)
class HarshSageMaker(MemorySageMaker):
    account: World = HARSH
    draw: Random = field(default_factory=Random)
    stage: Stage = field(default_factory=Stage)
    elapses: Any = None
    """Moves the clock."""
    _rates: Rates = field(default_factory=Rates)

    def create(self, request: Mapping[str, Any], *, launcher: Launcher | None = None) -> str:
        self._called("CreateTrainingJob")
        refused = refusal(self.account, request, self._used()) if not self.refuse else None
        if refused is not None:
            raise AccountLimitError(refused.message)
        return MemorySageMaker.create(self, request, launcher=launcher)

    def describe(self, training_job_name: str) -> Observation | None:
        self._called("DescribeTrainingJob")
        if training_job_name in self.jobs and self._is_unread(self.jobs[training_job_name]):
            return None
        return MemorySageMaker.describe(self, training_job_name)

    def in_progress(self, *, limit: int) -> tuple[Listed, ...]:
        self._called("ListTrainingJobs")
        found = MemorySageMaker.in_progress(self, limit=limit)
        return tuple(one for one in found if not self._is_unread(self.jobs[one.training_job_name]))

    def tags(self, training_job_arn: str) -> dict[str, str]:
        self._called("ListTags")
        return MemorySageMaker.tags(self, training_job_arn)

    def stop(self, training_job_name: str) -> None:
        self._called("StopTrainingJob")
        MemorySageMaker.stop(self, training_job_name)

    def keep_alive(self, training_job_name: str, period: timedelta) -> bool:
        self._called("UpdateTrainingJob")
        return MemorySageMaker.keep_alive(self, training_job_name, period)

    def end(self, name: str, status: str, secondary: str | None = None, reason: str | None = None) -> None:
        """Without a quota of warm pools the job ends as any, and leaves none."""
        kept = sum(one.vector.total() for one in self.kept_warm().values())
        MemorySageMaker.end(self, name, status, secondary, reason)
        job = self.jobs[name]
        if job.warm == "Available" and not keeps_warm(self.account, job.vector.total(), kept):
            job.warm, job.kept_until = None, None

    def _called(self, operation: str) -> None:
        """Only what the plane calls; whoever sits at the console has time."""
        if self.stage.current is None:
            return
        self.elapses(latency(self.account, self.draw))
        if not self._rates.take(operation, self.account.rates, self.clock()):
            raise UnavailableError(f"{operation} was refused: ThrottlingException")

    def _is_unread(self, job: TrainingJob) -> bool:
        return self.clock() < job.created + timedelta(seconds=self.account.read_delay_seconds)

    def _used(self) -> Counter[tuple[str, str]]:
        used: Counter[tuple[str, str]] = Counter()
        for job in (*self.live().values(), *self.kept_warm().values()):
            for capacity, count in job.vector.items():
                used[capacity_type(job.request), capacity.instance_type] += count
        return used


@dataclass(slots=True)
class HarshWorld(plane.World):
    draw: Random = field(default_factory=Random)

    def make_sagemaker(self) -> MemorySageMaker:
        return HarshSageMaker(
            clock=self.clock,
            account=_account(self.draw),
            draw=self.draw,
            stage=self.stage,
            elapses=self.elapses,
        )

    def elapses(self, passed: timedelta) -> None:
        self.now += passed


@dataclass(slots=True)
class HarshHistory(History):
    def __post_init__(self) -> None:
        History.__post_init__(self)
        draw = Random(self.dice.random())
        self.world = HarshWorld(document=self.world.document, stage=self.stage, draw=draw)

    def deliver(self) -> None:
        """Some events have no tags, so the table is asked whose they are."""
        if not self.events or self.dice.random() >= HARSH.events_without_tags:
            History.deliver(self)
            return
        name = self.dice.choice(self.events)
        self.start(f"event of {name} without tags", lambda: self.world.hear_of_unmanaged(name))

    def _forget_the_dead(self) -> None:
        """Calls take time: a function that has lived too long dies before its next one."""
        for process, since in self.processes:
            if not process.done and self.world.now - since >= LIFE:
                self.stage.kill(process)
        History._forget_the_dead(self)


def _account(draw: Random) -> World:
    """Quotas that every job fits into by itself."""
    quotas = {A: draw.choice([2, 3]), B: 2}
    return changed(HARSH, {"quotas": quotas, "warm_pool_quota": draw.choice([0, None])})
