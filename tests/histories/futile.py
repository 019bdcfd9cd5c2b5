"""I16, judged apart from the product: a futile preemption is not repeated before its wait is over."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.jobs.instances import Choice, Vector
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.records import WriteCondition

WAITS = tuple(timedelta(minutes=count) for count in (15, 30, 60, 120, 240))
OUR_STOPS = frozenset({"preemption", "idle-requeue", "underused-requeue", "spot-fallback"})


@dataclass(slots=True)
class Chain:
    """Preemptions for one job since an attempt of it last trained."""

    futile: int = 0
    since: datetime | None = None
    recorded: datetime | None = None
    vector: Vector = field(default_factory=dict)
    any_type: bool = False


@dataclass(slots=True)
class FutilePreemptionsJudge:
    """Follows every commit; what it knows comes from changes and conditions alone."""

    chains: defaultdict[str, Chain] = field(default_factory=lambda: defaultdict(Chain))
    room_for: dict[str, int] = field(default_factory=dict)
    """Attempt that others were stopped for, by job."""
    trained: list[tuple[Vector, datetime]] = field(default_factory=list)
    """What reached Training, and when."""
    early: int = 0
    """Waits that an attempt ended before their time."""
    in_time: int = 0
    """Preemptions that were repeated once the wait was over."""

    def follow(self, change: Change, condition: WriteCondition | None, *, at: datetime) -> None:
        before, after, name = change.before, change.after, change.after.name
        if before.live is None and after.live is not None:
            if condition is not None and condition.ends_hold_of == name:
                self.room_for[name] = after.attempt
            return
        trains = change.ended or after.live
        if trains is not None and trains.training_since is not None:
            self.trained.append((trains.vector, trains.training_since))
            self.chains.pop(name, None)
            self.room_for.pop(name, None)
        elif before.live is not None and after.live is None and self.room_for.get(name) == before.attempt:
            self._ended(change, at=at)
        if condition is not None and condition.drops_hold is not None:
            self._add(after, condition.drops_hold.vector, ended=at, at=at)

    def _ended(self, change: Change, *, at: datetime) -> None:
        before, after, ended = change.before, change.after, change.ended
        assert before.live is not None
        if after.state is not JobState.PENDING:
            return
        if ended is None and after.not_before is None:
            return  # in its turn at once, with the same attempt
        self.room_for.pop(after.name)
        reason = ended.reason.code if ended is not None and ended.reason is not None else None
        if reason == "restored" or (reason in OUR_STOPS and before.state is JobState.PREEMPTING):
            return
        over = ended.ended_at if ended is not None else None
        vector = ended.vector if ended is not None else before.live.vector
        self._add(after, vector, ended=over or at, at=at)

    def _add(self, job: Job, vector: Vector, *, ended: datetime, at: datetime) -> None:
        chain = self.chains[job.name]
        chain.futile, chain.since, chain.recorded, chain.vector = chain.futile + 1, ended, at, vector
        chain.any_type = job.spec.choice is Choice.SAGEMAKER and len(vector) > 1

    def judge(self, preemptor: Job, *, at: datetime) -> None:
        """Others are asked to stop for it, now."""
        chain = self.chains.get(preemptor.name)
        if chain is None or chain.recorded is None:
            return
        wait = WAITS[min(chain.futile, len(WAITS)) - 1]
        if at >= chain.recorded + wait:
            self.in_time += 1
            return
        self.early += 1
        assert self._is_served(chain), (
            f"{preemptor.name} stops others at {at}, {chain.futile} times in vain until {chain.recorded}"
        )

    def _is_served(self, chain: Chain) -> bool:
        assert chain.since is not None
        since = chain.since
        served = [
            any(vector.get(one, 0) >= count and at > since for vector, at in self.trained)
            for one, count in chain.vector.items()
        ]
        return any(served) if chain.any_type else all(served)
