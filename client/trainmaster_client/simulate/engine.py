"""Replays of a history: every pool of a policy, from event to event."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from trainmaster.core.policy import Policy, PoolPolicy

from trainmaster_client.simulate.admitted_jobs import Admission, Admitted, not_judged
from trainmaster_client.simulate.agenda import Agenda, Event, What
from trainmaster_client.simulate.past_jobs import History, PastJob
from trainmaster_client.simulate.plain_pool import PlainPool
from trainmaster_client.simulate.pool_replay import PoolReplay, Setting
from trainmaster_client.simulate.pool_state import TeamBudgets
from trainmaster_client.simulate.processes import Progress
from trainmaster_client.simulate.replays import PLAIN_QUEUE, Replay
from trainmaster_client.simulate.runs import TICK, exact_s, in_s
from trainmaster_client.simulate.tally import Tally

EVENTS_PER_REPORT = 500

PoolNames = tuple[str, ...]


def replay(
    history: History,
    policy: Policy,
    *,
    label: str,
    progress: Progress | None = None,
    until: datetime | None = None,
) -> Replay:
    """What would have become of the jobs of a history under a policy.

    Args:
        history: Whose jobs are submitted again, when they were.
        policy: Decides.
        label: Of the result.
        progress: Hears of the share that is done.
        until: Ends there with what is live then; None: once nothing is left to happen.
    """
    found = nothing_yet(history, policy, label=label)
    parts = groups(policy)
    for number, pools in enumerate(parts):
        part = _part(progress, number, len(parts))
        add(found, replay_pools(history, policy, pools, progress=part, until=until))
    return found


def plain_queue(history: History, policy: Policy, *, progress: Progress | None = None) -> Replay:
    """The same jobs in the same pools, in a plain queue: strict priority with preemption."""
    found = nothing_yet(history, policy, label=PLAIN_QUEUE)
    pools = tuple(pool.name for pool in policy.pools)
    add(found, plain_pools(history, policy, pools, progress=progress))
    return found


def plain_pools(
    history: History, policy: Policy, pools: PoolNames, *, progress: Progress | None = None
) -> list[Tally]:
    """Some pools with the plain queue in them; none depends on another."""
    engine = engine_of(history, policy, pools, PlainPool.of)
    engine.run(progress=progress)
    return engine.close()


def groups(policy: Policy) -> list[PoolNames]:
    """Pools that have to be replayed together: all, where a team has a budget, which counts in every pool."""
    names = tuple(pool.name for pool in policy.pools)
    return [names] if any(team.budget for team in policy.teams) else [(name,) for name in names]


def replay_pools(
    history: History,
    policy: Policy,
    pools: PoolNames,
    *,
    progress: Progress | None = None,
    until: datetime | None = None,
) -> list[Tally]:
    """One group of pools."""
    engine = engine_of(history, policy, pools, PoolReplay.of)
    engine.run(until=None if until is None else in_s(until - history.begins), progress=progress)
    return engine.close()


def nothing_yet(history: History, policy: Policy, *, label: str) -> Replay:
    """Before anything has happened: capacities, and who is refused."""
    found = Replay(policy=label, capacity=capacities(policy))
    admission, cut = Admission.of(policy), 0
    for job in history.jobs:
        outcome = admission.judge(job)
        if isinstance(outcome, Admitted):
            cut += outcome.priority < job.priority
        else:
            found.refused[job.name] = outcome.reason
    if cut:
        found.notes.append(f"{cut} jobs had a priority above their team's ceiling, and run with the ceiling.")
    if unknown := not_judged(policy):
        found.notes.append(f"Rules that need more of a request than the history has: {', '.join(unknown)}.")
    return found


def capacities(policy: Policy) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    return {
        pool.name: {"on-demand": dict(pool.capacity), "spot": dict(pool.spot_capacity)}
        for pool in policy.pools
    }


def add(found: Replay, tallies: Iterable[Tally]) -> None:
    for tally in tallies:
        found.attempts += tally.attempts
        found.warm += tally.warm
        found.passes += tally.passes
        found.cpu_s += tally.cpu_s


def _part(progress: Progress | None, number: int, parts: int) -> Progress | None:
    return None if progress is None else lambda share: progress((number + share) / parts)


class Pool(Protocol):
    """One pool of a replay. Whatever happens is followed by ``decide``."""

    tally: Tally

    def submitted(self, past: PastJob, found: Admitted) -> None: ...
    def hears(self, what: What, name: str, serial: int) -> bool:
        """False where the news came too late to change anything."""

    def decide(self) -> None: ...
    def close(self) -> None:
        """The replay ends here."""


P = TypeVar("P", bound=Pool)


@dataclass(slots=True, kw_only=True)
class Engine(Generic[P]):
    """Some pools of a policy, from event to event."""

    setting: Setting
    pools: dict[str, P]
    to_come: dict[str, tuple[PastJob, Admitted]] = field(default_factory=dict)
    """Jobs that are not submitted yet."""
    last_s: float = 1
    """When the last is."""

    @property
    def agenda(self) -> Agenda:
        return self.setting.agenda

    def expect(self, job: PastJob, found: Admitted) -> None:
        """It is going to be submitted."""
        self.to_come[job.name] = (job, found)
        # Rounded up: not before it was there.
        second = in_s(-((self.setting.begins - job.submitted_at) // TICK) * TICK)
        self.last_s = max(self.last_s, second)
        self.agenda.put(second, What.SUBMITTED, found.pool.name, job.name)
        if job.withdrawn_after is not None:
            withdrawn_s = exact_s(second + in_s(job.withdrawn_after))
            self.agenda.put(withdrawn_s, What.WITHDRAWN, found.pool.name, job.name)

    def run(self, *, until: float | None = None, progress: Progress | None = None) -> None:
        """Until nothing happens any more, or up to and with that second."""
        events = 0
        while self.step(until=until) is not None:
            events += 1
            if progress is not None and events % EVENTS_PER_REPORT == 0:
                progress(min(max(self.agenda.now / self.last_s, 0.0), 1.0))
        if until is not None:
            self.agenda.now = max(self.agenda.now, until)
        if progress is not None:
            progress(1.0)

    def step(self, *, until: float | None = None) -> Event | None:
        """The next event, with the pass that it wakes; None: there is none by then."""
        event = self.agenda.take(until=until)
        if event is None:
            return None
        pool = self.pools[event.pool]
        if event.what is What.SUBMITTED:
            pool.submitted(*self.to_come.pop(event.job))
            pool.decide()
        elif pool.hears(event.what, event.job, event.serial):
            pool.decide()
        return event

    def close(self) -> list[Tally]:
        for pool in self.pools.values():
            pool.close()
        return [pool.tally for pool in self.pools.values()]


def engine_of(
    history: History, policy: Policy, pools: PoolNames, make: Callable[[PoolPolicy, Setting], P]
) -> Engine[P]:
    """With every job of these pools to come."""
    setting = Setting(
        policy=policy,
        begins=history.begins,
        pace=history.pace,
        agenda=Agenda(),
        account=history.account,
        budgets=TeamBudgets.of(policy),
        cpu_clock=time.process_time,
    )
    mine = {pool.name: make(pool, setting) for pool in policy.pools if pool.name in pools}
    engine, admission = Engine(setting=setting, pools=mine), Admission.of(policy)
    for job in history.jobs:
        found = admission.judge(job)
        if isinstance(found, Admitted) and found.pool.name in mine:
            engine.expect(job, found)
    return engine
