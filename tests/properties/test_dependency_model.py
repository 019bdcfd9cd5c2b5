"""Three jobs with conditions, in every order of what can happen to them: ends, retries, stops, late news."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import ConditionKind, ParentEnd
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.dependents import after_parent, with_conditions
from trainmaster.core.outbox.derive import messages_to_dependents
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.request.options import WantedCondition
from trainmaster.core.submission.array_conditions import WrittenCondition
from trainmaster.core.submission.parents import Child, judge_parents

from tests.builders import NOON, job, pool

S = JobState
NAMES = ("a", "b", "c")
Parents = dict[str, tuple[tuple[ConditionKind, str], ...]]
KINDS = tuple(kind for kind in ConditionKind if kind is not ConditionKind.AFTER_CORR)  # between arrays alone
MOST_RETURNS = 1
"""How often a job comes back to the queue: by a retry, a preemption or a requeue."""


def graphs() -> Iterator[tuple[str, Parents]]:
    """A chain, a fork and a join, with every pair of types."""
    for first, second in itertools.product(KINDS, KINDS):
        yield f"chain-{first}-{second}", {"b": ((first, "a"),), "c": ((second, "b"),)}
        yield f"fork-{first}-{second}", {"b": ((first, "a"),), "c": ((second, "a"),)}
        yield f"join-{first}-{second}", {"c": ((first, "a"), (second, "b"))}


@dataclass(frozen=True, slots=True)
class State:
    """What the table holds: jobs, and messages that are not done."""

    jobs: tuple[tuple[str, Job], ...] = ()
    messages: tuple[OutboxMessage, ...] = ()
    repeats: int = 1
    """Deliveries that may still happen twice."""
    refused: frozenset[str] = frozenset()
    """Jobs that were not stored: a condition could hold no more."""

    def job(self, name: str) -> Job | None:
        return dict(self.jobs).get(name)

    @property
    def key(self) -> tuple[object, ...]:
        return (
            tuple((name, _key(one)) for name, one in self.jobs),
            tuple(message.id for message in self.messages),
            self.repeats,
            self.refused,
        )

    def with_change(self, change: Change) -> "State":
        """Write a change as the store does: with the message that it causes."""
        name = change.after.name
        jobs = tuple((other, change.after if other == name else one) for other, one in self.jobs)
        left = messages_to_dependents(change, at=NOON)
        return replace(self, jobs=jobs, messages=(*self.messages, *left))


def _key(one: Job) -> tuple[object, ...]:
    ends = () if one.after is None else tuple(condition.end for condition in one.after.conditions)
    return (one.state, one.attempt, ends, one.eligible_at is None, one.has_dependents)


def moves(state: State, parents: Parents) -> Iterator[State]:
    """Everything that may happen next."""
    for name in NAMES:
        one = state.job(name)
        if (
            one is None
            and name not in state.refused
            and all(state.job(parent) for _, parent in parents.get(name, ()))
        ):
            yield submitted(state, name, parents.get(name, ()))
        elif one is not None and not one.is_final:
            yield from (state.with_change(Change(before=one, after=after)) for after in steps_of(one))
    for message in state.messages:
        yield delivered(state, message)
        if state.repeats:
            yield replace(delivered(state, message), messages=state.messages, repeats=state.repeats - 1)


def steps_of(one: Job) -> Iterator[Job]:
    """Passes start what has a turn; users, SageMaker and rules do the rest."""
    reason = Reason(code=ReasonCode.UNKNOWN, message="it happened")
    if one.is_waiting and not one.is_parked:
        yield one.moved_to(S.STARTING)
    if one.is_waiting:
        stopped = one.moved_to(S.STOPPED)
        yield replace(stopped, not_before=None, reason=reason, ended_at=NOON)
    if one.state is S.STARTING:
        yield one.moved_to(S.RUNNING)
    if one.state is S.RUNNING:
        for end in (S.COMPLETED, S.FAILED, S.STOPPED):
            yield replace(one.moved_to(end), reason=reason, ended_at=NOON)
        if one.attempt < MOST_RETURNS:
            yield replace(one.moved_to(S.PENDING), attempt=one.attempt + 1)


def submitted(state: State, name: str, parents: tuple[tuple[ConditionKind, str], ...]) -> State:
    """Store the job as the API does; the parents are as it reads them."""
    known = {parent: one for _, parent in parents if (one := state.job(parent)) is not None}
    written = [
        WrittenCondition(field="Tags[0].Value", wanted=WantedCondition(kind=kind, job=parent))
        for kind, parent in parents
    ]
    child = Child(name=name, team="default", most_parents=20, hold_when_impossible=False)
    judged = judge_parents(written, known, child)
    if judged.violations:
        return replace(state, refused=state.refused | {name})
    new = replace(job(name, entry_id=f"entry-{name}"), has_dependents=None)
    if judged.after is not None:
        new = with_conditions(new, judged.after, pool=pool(), now=NOON)
    marked = {parent: replace(one, has_dependents=True) for parent, one in known.items() if not one.is_final}
    jobs = tuple((other, marked.get(other, one)) for other, one in state.jobs)
    return replace(state, jobs=(*jobs, (name, new)))


def delivered(state: State, message: OutboxMessage) -> State:
    """Tell every child of the end, as a pass does, and delete the message."""
    assert message.parent is not None
    left = tuple(one for one in state.messages if one is not message)
    state = replace(state, messages=left)
    for name in NAMES:
        one = state.job(name)
        if one is not None and one.after is not None:
            change = after_parent(one, message.parent, pool=pool(), now=NOON)
            if change is not None:
                assert one.waits_for_others, f"{name} is released twice"
                state = state.with_change(change)
    return state


HOLDS = {
    ConditionKind.AFTER_OK: {ParentEnd.COMPLETED},
    ConditionKind.AFTER_ANY: set(ParentEnd),
    ConditionKind.AFTER_NOT_OK: {ParentEnd.FAILED, ParentEnd.STOPPED},
}


def judge(state: State, parents: Parents) -> None:
    """I17: nothing starts before its conditions hold, or ends for one that may still hold."""
    for name, one in state.jobs:
        ends = [(kind, state.job(parent)) for kind, parent in parents.get(name, ())]
        holds = [
            parent is not None and parent.is_final and ParentEnd(parent.state.value) in HOLDS[kind]
            for kind, parent in ends
        ]
        if one.is_live or one.attempt:
            assert all(holds), f"{name} started early"
        if one.reason is not None and one.reason.code is ReasonCode.DEPENDENCY:
            assert not all(holds), f"{name} ended although its conditions hold"


def _marked(name: str, parents: Parents) -> object:
    """A graph with two equal types is quick enough for every run."""
    first, second = name.split("-")[1:]
    marks = () if first == second else (pytest.mark.thorough,)
    return pytest.param(parents, id=name, marks=marks)


@pytest.mark.parametrize("parents", [_marked(name, graph) for name, graph in graphs()])
def test_no_order_of_events_orphans_a_dependent_or_starts_it_early(parents: Parents) -> None:
    first = State()
    seen, left, ends = {first.key}, [first], 0
    while left:
        state = left.pop()
        judge(state, parents)
        following = list(moves(state, parents))
        if not following:
            ends += 1
            waiting = [name for name, one in state.jobs if not one.is_final]
            assert waiting == [], f"{waiting} wait for ever"
        for after in following:
            if after.key not in seen:
                seen.add(after.key)
                left.append(after)
    assert ends > len(NAMES)
    assert len(seen) > 300
