"""Breadth first through every state that a budget of faults can lead to."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import NamedTuple

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.states import TRANSITIONS
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change

from tests.builders import NOON
from tests.model.plane import ModelStore, Plane
from tests.model.states import Moving, Rows, State
from tests.model.training_jobs import Training, may_be_deleted, next_of

S = JobState
ASKED = (S.PREEMPTING, S.STOPPING)
HELD = Reason(code=ReasonCode.HELD, message="held by ada")
PAST = NOON - timedelta(hours=1)


class Budget(NamedTuple):
    """How often each fault may happen in one run of the world."""

    crashes: int = 0
    refusals: int = 0
    """The account limit is hit."""
    lost: int = 0
    """CreateTrainingJob happens and nobody hears of it."""
    throttled: int = 0
    no_capacity: int = 0
    failures: int = 0
    """For good."""
    retried: int = 0
    """Failures that the job comes back from."""
    outside_stops: int = 0
    """Somebody stops a training job in the console."""
    deletions: int = 0
    """Somebody deletes a training job that is over."""
    cancels: int = 0
    holds: int = 0
    arrivals: int = 1
    """Of job2, which goes before job1."""
    processes: int = 1
    """At once."""


FIELDS = Budget._fields


@dataclass(slots=True, kw_only=True)
class Explored:
    states: int = 0
    seen: set[JobState] = field(default_factory=set)
    edges: set[tuple[JobState, JobState]] = field(default_factory=set)
    stuck: list[State] = field(default_factory=list)
    """From which no faultless way leads to where every job is final."""

    @property
    def never_taken(self) -> set[tuple[JobState, JobState]]:
        every = {(before, after) for before, afters in TRANSITIONS.items() for after in afters}
        return every - self.edges


class Explorer:
    def __init__(self, budget: Budget, *, warm_pools: bool = True, elastic: bool = False) -> None:
        self.warm_pools = warm_pools
        self.plane = Plane(warm_pools=warm_pools, elastic=elastic)
        self.first = self.plane.first_state(tuple(budget))
        self._back: dict[State, list[State]] = {}
        """Each state, and those from which a step without a fault leads to it."""
        self._came_from: dict[State, tuple[State | None, str]] = {self.first: (None, "")}

    def explore(self) -> Explored:
        found, queue = Explored(), deque([self.first])
        resting: list[State] = []
        while queue:
            state = queue.popleft()
            found.states += 1
            self._check(state)
            found.seen |= {job.state for job in self._jobs(state)}
            if self._rests(state):
                resting.append(state)
            for label, after, is_fault in self._moves(state):
                if after not in self._came_from:
                    self._came_from[after] = (state, label)
                    queue.append(after)
                if not is_fault:
                    self._back.setdefault(after, []).append(state)
        found.edges = set(self.plane.edges)
        found.stuck = self._stuck(resting)
        return found

    def widths(self) -> set[tuple[int, str | None]]:
        """Instances of job1 in all states in which it has some, with the reason why it is stopped."""
        jobs = (job for state in self._came_from for job in self._jobs(state) if job.name == "job1")
        return {
            (sum(job.live.vector.values()), None if job.reason is None else str(job.reason.code))
            for job in jobs
            if job.live is not None and not job.is_final
        }

    def story(self, state: State) -> list[str]:
        """How it came to this, from the first step on."""
        steps: list[str] = []
        at: State | None = state
        while at is not None:
            at, label = self._came_from[at]
            steps.append(label)
        return steps[::-1][1:]

    # ---- what must hold in each state

    def _check(self, state: State) -> None:
        try:
            self._invariants(state)
        except AssertionError as error:
            error.add_note("\n".join(self.story(state)))
            raise

    def _invariants(self, state: State) -> None:
        jobs, rows = self._jobs(state), self._rows(state)
        live = [job for job in jobs if job.live is not None]
        names = {job.live.training_job_name: sum(job.live.vector.values()) for job in live if job.live}
        in_all = self.plane.capacity
        assert rows.used == sum(names.values()), f"{rows.used} in use, {names} live"
        assert rows.warm == len(rows.warm_pools), rows
        assert rows.used + rows.warm <= in_all, f"{rows.used} used and {rows.warm} warm of {in_all}"
        training = [self.plane.tokens.value(one) for one in state.training]
        running = {one.name: one.instances for one in training if one.status in ("InProgress", "Stopping")}
        assert running.items() <= names.items(), f"training jobs beside {names}: {running}"
        warm = [one.name for one in training if one.warm == "Available"]
        held = sum(running.values()) + len(warm)
        assert held <= in_all, f"{running} run and {warm} are warm, on {in_all} instances"
        for job in jobs:
            stopped = job.name in state.stops
            assert not stopped or job.state is S.STOPPING or job.is_final, (
                f"{job.name} was stopped, is {job.state}"
            )

    def _rests(self, state: State) -> bool:
        rows = self._rows(state)
        over = all(job.is_final for job in self._jobs(state))
        return over and not state.processes and rows.used == rows.warm == 0 and not rows.holds

    def _stuck(self, resting: list[State]) -> list[State]:
        good, queue = set(resting), deque(resting)
        while queue:
            for before in self._back.get(queue.popleft(), ()):
                if before not in good:
                    good.add(before)
                    queue.append(before)
        return [state for state in self._came_from if state not in good]

    # ---- what may happen next

    def _moves(self, state: State) -> Iterator[tuple[str, State, bool]]:
        yield from self._beginnings(state)
        for place, process in enumerate(state.processes):
            yield from self._steps(state, place, process)
        yield from self._outside(state)
        yield from self._users(state)

    def _beginnings(self, state: State) -> Iterator[tuple[str, State, bool]]:
        """A process is run to its first write; one that writes nothing leaves no trace."""
        if len(state.processes) >= state.left[FIELDS.index("processes")]:
            return
        live = [job for job in self._jobs(state) if job.is_live]
        acts = [("pass", "", 0), *(("look", job.name, 0) for job in live)]
        if not any(one.act == "pass" for one in state.processes):
            # A lease outlives the function that took it.
            acts += [("look", job.name, 1 + job.starts.refused) for job in live if _is_unrecorded(job)]
        acts += [("look", job.name, 1) for job in live if _is_missing(job)]
        if self._left(state, "cancels"):
            acts += [("cancel", job.name, 0) for job in self._jobs(state) if not job.is_final]
        for act, subject, late in acts:
            process = Moving(act=act, subject=subject, late=late, answers=())
            after, next_one = self.plane.move(state, process, "ok", may_change=False)
            if next_one is None:
                assert after == state, f"{act} {subject} wrote something and did not stop before it"
                continue
            after = after._replace(processes=_sorted((*state.processes, next_one)))
            after = self._spent(after, "cancels") if act == "cancel" else after
            yield f"{act} {subject} begins{' later' if late else ''}", after, False

    def _steps(self, state: State, place: int, process: Moving) -> Iterator[tuple[str, State, bool]]:
        others = state.processes[:place] + state.processes[place + 1 :]
        for outcome in self._outcomes(state):
            after, next_one = self.plane.move(state, process, outcome, may_change=True)
            processes = others if next_one is None else _sorted((*others, next_one))
            after = after._replace(processes=processes)
            if outcome == "ok":
                plain = after
                yield f"{process.act} {process.subject}", after, False
            elif after != plain:
                spent = {"limit": "refusals", "lost": "lost", "throttled": "throttled"}[outcome]
                yield f"{process.act}: create is {outcome}", self._spent(after, spent), True
        if self._left(state, "crashes"):
            yield f"{process.act} dies", self._spent(state, "crashes")._replace(processes=others), True

    def _outcomes(self, state: State) -> list[str]:
        """Of a create; any other write knows only one."""
        faults = {"refusals": "limit", "lost": "lost", "throttled": "throttled"}
        return ["ok", *(outcome for name, outcome in faults.items() if self._left(state, name))]

    def _outside(self, state: State) -> Iterator[tuple[str, State, bool]]:
        """Training jobs go on, warm pools, holds and limits come to their ends.

        That one which is to stop ends by itself is luck: nobody may count on it.
        """
        asked = {job.live.training_job_name for job in self._jobs(state) if job.live and job.state in ASKED}
        for place, token in enumerate(state.training):
            one: Training = self.plane.tokens.value(token)
            for changed, costs in next_of(one, keeps="Available" if self.warm_pools else None):
                if costs is not None and not self._left(state, costs):
                    continue
                training = (
                    *state.training[:place],
                    self.plane.tokens.of(changed),
                    *state.training[place + 1 :],
                )
                after = state._replace(training=training)
                after = after if costs is None else self._spent(after, costs)
                after = self._past_its_time(after, one.name) if one.warm == "Available" else after
                by_luck = one.status == "InProgress" and changed.status != "InProgress" and one.name in asked
                label = f"{one.name} is {changed.secondary}, warm pool: {changed.warm}"
                yield label, after, costs is not None or by_luck
            if self._left(state, "deletions") and may_be_deleted(one):
                others = state.training[:place] + state.training[place + 1 :]
                yield (
                    f"{one.name} is deleted",
                    self._spent(state._replace(training=others), "deletions"),
                    True,
                )
        yield from self._times_over(state)

    def _times_over(self, state: State) -> Iterator[tuple[str, State, bool]]:
        """What a row of the pool waits for. A warm pool that SageMaker still keeps ends there first."""
        training: list[Training] = [self.plane.tokens.value(token) for token in state.training]
        kept = {one.name for one in training if one.warm == "Available"}
        rows = self._rows(state)
        for name in (one.training_job_name for one in rows.warm_pools):
            if name not in kept and (late := self._past_its_time(state, name)) != state:
                yield f"the time of the warm pool of {name} is over", late, False
        if any(hold.until is not None and hold.until > NOON for hold in rows.holds):
            ended = tuple(replace(one, until=one.until and PAST) for one in rows.holds)
            yield "a hold is over", self._with_rows(state, replace(rows, holds=ended)), False
        if rows.limit is not None and rows.limit.until > NOON:
            due = replace(rows, limit=replace(rows.limit, until=PAST))
            yield "the account limit may be probed", self._with_rows(state, due), False

    def _users(self, state: State) -> Iterator[tuple[str, State, bool]]:
        if self._left(state, "arrivals"):
            second = self.plane.stored(self.plane.new_job("job2"))
            arrived = self._spent(state._replace(jobs=(*state.jobs, second.ver)), "arrivals")
            yield "job2 is submitted", arrived, False
        for job in self._jobs(state):
            if job.state is S.HELD:
                yield f"release {job.name}", self._written(state, job, steps.released(job)), False
            elif job.is_waiting and self._left(state, "holds"):
                held = self._written(state, job, steps.held(job, HELD))
                yield f"hold {job.name}", self._spent(held, "holds"), True

    # ---- small parts

    def _jobs(self, state: State) -> list[Job]:
        return [self.plane.job(token) for token in state.jobs]

    def _rows(self, state: State) -> Rows:
        rows: Rows = self.plane.tokens.value(state.rows)
        return rows

    def _with_rows(self, state: State, rows: Rows) -> State:
        return state._replace(rows=self.plane.tokens.of(rows))

    def _past_its_time(self, state: State, name: str) -> State:
        """The row of a warm pool says itself until when SageMaker keeps it."""
        rows = self._rows(state)
        kept = tuple(
            replace(one, expires_at=PAST) if one.training_job_name == name else one for one in rows.warm_pools
        )
        return self._with_rows(state, replace(rows, warm_pools=kept))

    def _written(self, state: State, before: Job, after: Job) -> State:
        tables = self.plane.tables(state)
        ModelStore(tables, self.plane).commit([Change(before=before, after=after)], at=NOON)
        return self.plane.state_of(state, tables, self.plane.sagemaker(state, lambda: NOON))

    def _left(self, state: State, name: str) -> int:
        return state.left[FIELDS.index(name)]

    def _spent(self, state: State, name: str) -> State:
        left = list(state.left)
        left[FIELDS.index(name)] -= 1
        return state._replace(left=tuple(left))


def _sorted(processes: tuple[Moving, ...]) -> tuple[Moving, ...]:
    return tuple(sorted(processes))


def _is_unrecorded(job: Job) -> bool:
    """Only of a claim whose create was not recorded the age of the lease matters."""
    return job.live is not None and job.live.training_job_arn is None


def _is_missing(job: Job) -> bool:
    """Only after a while a second look concludes that a training job was deleted."""
    return job.live is not None and job.live.missing_since is not None
