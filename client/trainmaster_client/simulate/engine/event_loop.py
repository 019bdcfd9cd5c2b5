"""Replays of a history: every pool of a policy, from event to event."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Generic, Protocol, TypeVar
from zoneinfo import ZoneInfo

from trainmaster.core.jobs.end_conditions import ParentEnd
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.pool_changes import AHEAD, changes_of, changes_with_time

from trainmaster_client.simulate.engine.admitted_jobs import Admission, Admitted, Refused, not_judged
from trainmaster_client.simulate.engine.children import Children
from trainmaster_client.simulate.engine.event_queue import Event, EventQueue, What
from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.engine.replay_progress import Progress
from trainmaster_client.simulate.engine.replay_setting import Setting
from trainmaster_client.simulate.engine.replayed_plans import notes_on_plans, replayed_plans
from trainmaster_client.simulate.engine.replays import CapacityStep, Replay
from trainmaster_client.simulate.engine.runs import SECOND, TICK, exact_s, in_s
from trainmaster_client.simulate.engine.tally import Tally
from trainmaster_client.simulate.engine.team_budgets import TeamBudgets

EVENTS_PER_REPORT = 500

PoolNames = tuple[str, ...]


def groups(history: History, policy: Policy) -> list[PoolNames]:
    """Return pools to replay together.

    They are all if a team has a budget, which counts in every pool, else those whose jobs wait for each
    other.
    """
    if any(team.budget for team in policy.teams):
        return [tuple(pool.name for pool in policy.pools)]
    return pools_with_children(history, policy)


def pools_with_children(history: History, policy: Policy) -> list[PoolNames]:
    """Return pools together whose jobs wait for each other, in the order of the policy."""
    home = {}
    if any(job.after for job in history.jobs):
        pools = ((job.name, policy.pool_of(job.instances)) for job in history.jobs)
        home = {name: pool.name for name, pool in pools if pool is not None}
        home |= {job.array.key: home[job.name] for job in history.jobs if job.array and job.name in home}
    group_of = {pool.name: frozenset({pool.name}) for pool in policy.pools}
    for job in history.jobs:
        for condition in job.after:
            pair = {home.get(job.name), home.get(condition.job)} - {None}
            joined = frozenset().union(*(group_of[name] for name in pair if name is not None))
            group_of |= dict.fromkeys(joined, joined)
    together = dict.fromkeys(group_of[pool.name] for pool in policy.pools)
    return [tuple(pool.name for pool in policy.pools if pool.name in group) for group in together]


def nothing_yet(history: History, policy: Policy, *, label: str) -> Replay:
    """Make a replay in which nothing has happened: capacities, and the jobs that are refused."""
    replay = Replay(
        policy=label,
        capacity=capacities(policy),
        steps=capacity_steps(history, policy),
        plans=replayed_plans(history, policy),
    )
    cut = 0
    for job, outcome in judged(history, policy):
        if isinstance(outcome, Admitted):
            cut += outcome.priority < job.priority
        else:
            replay.refused[job.name] = outcome.reason
    if cut:
        replay.notes.append(
            f"{cut} jobs had a priority above their team's ceiling, and run with the ceiling."
        )
    if unknown := not_judged(policy):
        replay.notes.append(f"Rules that need more of a request than the history has: {', '.join(unknown)}.")
    if by_the_clock := [pool.name for pool in policy.pools if changes_with_time(pool)]:
        replay.notes.append(f"Capacity by the clock is replayed in {', '.join(by_the_clock)}.")
    replay.notes += notes_on_plans(policy)
    return replay


def judged(history: History, policy: Policy) -> Iterator[tuple[PastJob, Admitted | Refused]]:
    """Yield each job with its admission; a job that waits for a refused one is refused too."""
    admission, refused = Admission.of(policy), set[str]()
    for job in history.jobs:
        missing = next((condition.job for condition in job.after if condition.job in refused), None)
        outcome = admission.judge(job) if missing is None else Refused(reason=f"waits for {missing}: refused")
        if isinstance(outcome, Refused):
            refused |= {job.name} if job.array is None else {job.name, job.array.key}
        yield job, outcome


def capacities(policy: Policy) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    return {
        pool.name: {"on-demand": dict(pool.most_capacity), "spot": dict(pool.spot_capacity)}
        for pool in policy.pools
    }


def capacity_steps(history: History, policy: Policy) -> Mapping[str, Sequence[CapacityStep]]:
    """Return the capacity over the time of a history, of the pools with a calendar."""
    begins = history.begins
    until = max([job.submitted_at for job in history.jobs], default=begins) + AHEAD
    return {
        pool.name: [
            CapacityStep(max((change.at - begins) // SECOND, 0), change.capacity)
            for change in changes_of(pool, since=begins, until=until, zone_of=ZoneInfo)
        ]
        for pool in policy.pools
        if pool.calendar
    }


def add(replay: Replay, tallies: Iterable[Tally]) -> None:
    for tally in tallies:
        replay.attempts += tally.attempts
        replay.warm += tally.warm
        replay.passes += tally.passes
        replay.cpu_s += tally.cpu_s


class Pool(Protocol):
    """A pool of a replay. Whatever happens is followed by ``decide``."""

    tally: Tally

    def submitted(self, past: PastJob, admitted: Admitted) -> None: ...
    def hears(self, what: What, name: str, serial: int) -> bool:
        """Handle an event; return False if it came too late to change anything."""

    def decide(self) -> None: ...
    def close(self) -> None:
        """End the replay here."""


P = TypeVar("P", bound=Pool)


@dataclass(slots=True, kw_only=True)
class Engine(Generic[P]):
    """Runs some pools of a policy, from event to event."""

    setting: Setting
    pools: dict[str, P]
    to_come: dict[str, tuple[PastJob, Admitted]] = field(default_factory=dict)
    """Jobs that are not in the queue yet."""
    children: Children = field(default_factory=Children)
    last_s: float = 1
    """When the last is."""

    @property
    def event_queue(self) -> EventQueue:
        return self.setting.event_queue

    def expect(self, job: PastJob, admitted: Admitted) -> None:
        """Expect the job to be submitted, and perhaps withdrawn, at its time."""
        self.to_come[job.name] = (job, admitted)
        self.children.expects(job)
        # Rounded up: not before it was there.
        second = in_s(-((self.setting.begins - job.submitted_at) // TICK) * TICK)
        self.last_s = max(self.last_s, second)
        self.event_queue.put(second, What.SUBMITTED, admitted.pool.name, job.name)
        if job.withdrawn_after is not None:
            withdrawn_s = exact_s(second + in_s(job.withdrawn_after))
            self.event_queue.put(withdrawn_s, What.WITHDRAWN, admitted.pool.name, job.name)

    def run(self, *, until: float | None = None, progress: Progress | None = None) -> None:
        """Run until nothing is left to happen, or up to and including that second."""
        events = 0
        while self.step(until=until) is not None:
            events += 1
            if progress is not None and events % EVENTS_PER_REPORT == 0:
                progress(min(max(self.event_queue.now / self.last_s, 0.0), 1.0))
        if until is not None:
            self.event_queue.now = max(self.event_queue.now, until)
        if progress is not None:
            progress(1.0)

    def step(self, *, until: float | None = None) -> Event | None:
        """Handle the next event, with the pass that it wakes; None if there is none until then."""
        event = self.event_queue.take(until=until)
        if event is None:
            return None
        # What an event makes eligible is there when the pass that the event wakes decides.
        for name in dict.fromkeys(self._hear(event)):
            self.pools[name].decide()
        return event

    def _hear(self, event: Event) -> Iterator[str]:
        """Let the event happen, and yield the pools in which it changes anything."""
        if event.what is What.SUBMITTED:
            yield from map(self._enters, self.children.submitted(self.to_come[event.job][0]))
        elif event.job in self.children.waiting:  # its user withdraws it
            yield from map(self._enters, self.children.ended(event.job, ParentEnd.STOPPED))
        elif (pool := self.pools[event.pool]).hears(event.what, event.job, event.serial):
            yield event.pool
            ended, pool.tally.ended = pool.tally.ended, []
            for name, end in ended:
                yield from map(self._enters, self.children.ended(name, end))

    def _enters(self, job: PastJob) -> str:
        """Put a job in its pool's queue: a child as if submitted at this instant. Return the pool's name."""
        past, admitted = self.to_come.pop(job.name)
        if past.after:
            eligible_at = self.setting.begins + timedelta(seconds=self.event_queue.now)
            past = replace(past, submitted_at=eligible_at)
        self.pools[admitted.pool.name].submitted(past, admitted)
        return admitted.pool.name

    def close(self) -> list[Tally]:
        for pool in self.pools.values():
            pool.close()
        return [pool.tally for pool in self.pools.values()]


def engine_of(
    history: History,
    policy: Policy,
    pools: PoolNames,
    make: Callable[[PoolPolicy, Setting], P],
    *,
    cpu_clock: Callable[[], float],
) -> Engine[P]:
    """Make the pools, with every job of theirs to come. ``cpu_clock`` measures the planner, in seconds."""
    setting = Setting(
        policy=policy,
        begins=history.begins,
        pace=history.pace,
        event_queue=EventQueue(),
        account=history.account,
        budgets=TeamBudgets.of(policy),
        cpu_clock=cpu_clock,
    )
    mine = {pool.name: make(pool, setting) for pool in policy.pools if pool.name in pools}
    parents = frozenset(condition.job for job in history.jobs for condition in job.after)
    engine = Engine(setting=setting, pools=mine, children=Children(parents=parents))
    for job, outcome in judged(history, policy):
        if isinstance(outcome, Admitted) and outcome.pool.name in mine:
            engine.expect(job, outcome)
    return engine
