"""Every end is one row of the table of ends, every row is somebody's end, and nobody else makes ends."""

import ast
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.elastic_state import ElasticState, TrainingProgress
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.instances import Shape
from trainmaster.core.jobs.model import LIVE, Job, JobState
from trainmaster.core.jobs.observations import Observation, TrainingJobEnd
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.states import TRANSITIONS
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.lifecycle.decision import ENDS, End, EndFacts, Question, Row, decide, end_of, questions
from trainmaster.core.lifecycle.settlement import settled
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.policy.governance import Fallback, Governing, OnOom, Recovery, Spot
from trainmaster.core.policy.plan_windows import PlanSeen, Window

from tests.builders import NOON, A, attempt, live_job, minutes, of, seen
from tests.markdown import ROOT

S, C, E = JobState, ReasonCode, TrainingJobEnd
LAYER = ROOT / "layers/trainmaster/trainmaster"
SAID: dict[TrainingJobEnd, Observation | None] = {
    E.GONE: None,
    E.COMPLETED: seen(status="Completed", secondary="Completed"),
    E.MAX_RUNTIME: seen(status="Stopped", secondary="MaxRuntimeExceeded"),
    E.MAX_WAIT: seen(status="Stopped", secondary="MaxWaitTimeExceeded"),
    E.NEVER_TRAINED: seen(
        status="Stopped",
        secondary="MaxRuntimeExceeded",
        max_pending=minutes(30),
        ended_at=NOON + minutes(30),
    ),
    E.STOPPED: seen(status="Stopped", secondary="Stopped"),
    E.NO_CAPACITY: seen(status="Failed", secondary="Failed", failure_reason="CapacityError: none"),
    E.FAILED: seen(status="Failed", secondary="Failed", failure_reason="AlgorithmError: exit code 1"),
}
STOPPED: tuple[tuple[JobState, ReasonCode | None], ...] = (
    (S.STARTING, None),
    (S.RUNNING, None),
    *((S.STOPPING, code) for code in (None, C.STOPPED_BY_USER, C.IDLE)),
    *((S.PREEMPTING, code) for code in (None, C.PREEMPTION, C.IDLE_REQUEUE, C.SPOT_FALLBACK)),
)
"""Live jobs, and what was recorded when we asked them to stop."""
SPOT = Shape(vector=of(spot=True))


def policy(**governing: Any) -> Policy:
    pool = PoolPolicy(name="main", capacity={A: 1}, spot_capacity={A: 4})
    whole = Governing(**governing)
    return Policy(pools=(pool,), teams=(), admins=(), warnings=(), source={}, governing=whole)


POLICIES = (
    policy(),
    policy(spot=Spot(fallback=Fallback.NONE), recovery=Recovery(max_retries=0)),
    policy(spot=Spot(max_interruptions=0), recovery=Recovery(on_oom=OnOom(batch=("bs",)))),
)


def facts_of(job: Job, said: Observation | None, **answers: Any) -> EndFacts:
    """Only what is asked for, as a service gathers it."""
    asked = questions(job, said)
    known: dict[str, Any] = {"policy": answers["policy"]} if asked else {}
    if Question.IS_RETRIED in asked:
        found = Diagnosis(failure_class=answers["failure_class"], advice="Do this.")
        known |= {"diagnosis": found, "hyperparameters": {"bs": "8"}}
    if Question.HAS_LATER_ATTEMPT in asked:
        known["has_later_attempt"] = answers["later"]
    return EndFacts(job=job, seen=said, **known)


def job_in(state: JobState, recorded: ReasonCode | None, interruptions: int | None, **of_job: Any) -> Job:
    """On spot where it may be interrupted."""
    values: dict[str, Any] = {} if recorded is None else {"reason": Reason(code=recorded, message="why")}
    if interruptions is not None:
        values |= {"shapes": (SPOT,), "live": attempt(shape=SPOT, interruptions=interruptions)}
    return live_job(state=state, **values, **of_job)


@st.composite
def every_fact(draw: st.DrawFn) -> EndFacts:
    state, recorded = draw(st.sampled_from(STOPPED))
    job = job_in(
        state,
        recorded,
        draw(st.none() | st.integers(0, 5)),
        retries=draw(st.integers(0, 4)),
        on_demand=draw(st.booleans()),
        halves_batch=draw(st.booleans()),
        productive=minutes(draw(st.integers(0, 200))),
    )
    return facts_of(
        job,
        draw(st.sampled_from(list(SAID.values()))),
        policy=draw(st.sampled_from(POLICIES)),
        failure_class=draw(st.sampled_from(FailureClass)),
        later=draw(st.booleans()),
    )


def is_row(row: Row, facts: EndFacts, end: End) -> bool:
    """The end is this row's, told from what the row says alone."""
    if row.job not in {None, facts.job.state} or row.says not in {None, end_of(facts.job, facts.seen)}:
        return False
    if row.code is not None:
        return (end.becomes, end.reason.code) == (row.becomes, row.code)
    codes = set(FailureClass) if row.says is E.FAILED else {code for _, code in STOPPED}
    return end.becomes is row.becomes and end.reason.code in codes


@given(facts=every_fact())
def test_every_end_is_exactly_one_row_of_the_table(facts: EndFacts) -> None:
    end = decide(facts, now=NOON)
    assert len([row for row in ENDS if is_row(row, facts, end)]) == 1, end
    assert end.becomes in TRANSITIONS[facts.job.state]


@given(facts=every_fact())
def test_the_end_says_what_its_row_asks_for(facts: EndFacts) -> None:
    end = decide(facts, now=NOON)
    failed = TrainingJobEnd.of(facts.seen) is E.FAILED and facts.job.state is not S.STOPPING
    assert (end.diagnosis is not None) == failed
    assert (end.retry is not None) == (failed and end.comes_back)
    assert not end.moves or (end.comes_back and not facts.job.spot.left and end.reason.code is not C.RESTORED)
    assert end.reason.message


PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
CLOSES = NOON + minutes(60)
"""When the instances of the plan's window begin to end: half an hour before the window does."""


def on_plan(exit_code: int | None, ended_at: datetime, *, plan_arn: str | None = PLAN) -> EndFacts:
    """Return the facts of an attempt that nobody stopped, and that failed at an instant of a window."""
    window = Window(begin=NOON - minutes(600), end=CLOSES + minutes(30), instances=2)
    plan = PlanSeen(arn=PLAN, status="Active", instance_type=A, total=2, windows=(window,))
    pool = replace(policy().pools[0], seen_plans={PLAN: plan})
    advice = Diagnosis(failure_class=FailureClass.UNKNOWN, advice="See its log.", exit_code=exit_code)
    return EndFacts(
        job=live_job(state=S.RUNNING, live=attempt(plan_arn=plan_arn)),
        seen=seen(status="Failed", secondary="Failed", failure_reason="AlgorithmError", ended_at=ended_at),
        policy=replace(policy(), pools=(pool,)),
        diagnosis=advice,
    )


def at_width(instances: int, state: JobState = S.RUNNING, **of_job: Any) -> EndFacts:
    """Return the facts of an elastic job whose attempt at a width ran out of time."""
    live = attempt(shape=Shape(vector=of(instances)), max_runtime=minutes(60))
    job = live_job(state=state, live=live, widths=Widths(counts=(1, 2, 4)), **of_job)
    return EndFacts(job=job, seen=SAID[E.MAX_RUNTIME])


def some_of_everything() -> Iterator[EndFacts]:
    yield on_plan(143, CLOSES - minutes(4))
    yield at_width(2)
    classes = (FailureClass.SERVICE, FailureClass.USER_CODE)
    for (state, recorded), said, interruptions in product(STOPPED, SAID.values(), (None, 0)):
        job = job_in(state, recorded, interruptions)
        for failure_class, later in product(classes, (False, True)):
            yield facts_of(job, said, policy=POLICIES[0], failure_class=failure_class, later=later)


DONE = ElasticState(progress=TrainingProgress(at=NOON, step=100, steps=100))


@pytest.mark.parametrize(
    ("facts", "becomes"),
    [
        pytest.param(at_width(2), (S.PREEMPTED, C.MAX_RUNTIME_AT_WIDTH), id="narrow"),
        pytest.param(at_width(2, S.STARTING), (S.PREEMPTED, C.MAX_RUNTIME_AT_WIDTH), id="not yet recorded"),
        pytest.param(at_width(4), (S.STOPPED, C.MAX_RUNTIME), id="at its largest width"),
        pytest.param(at_width(2, S.STOPPING), (S.STOPPED, C.MAX_RUNTIME), id="asked to stop for good"),
        pytest.param(at_width(2, elastic=DONE), (S.STOPPED, C.MAX_RUNTIME), id="no step is left"),
        pytest.param(
            at_width(2, extensions=3, checkpointed=timedelta(hours=99)),
            (S.STOPPED, C.MAX_RUNTIME),
            id="prolonged too often",
        ),
    ],
)
def test_a_narrow_attempt_whose_time_is_over_comes_back_while_steps_are_left(
    facts: EndFacts, becomes: tuple[JobState, ReasonCode]
) -> None:
    end = decide(facts, now=NOON)
    assert (end.becomes, end.reason.code) == becomes
    assert settled(facts.job, end, facts.seen, now=NOON).after.state is becomes[0]


@pytest.mark.parametrize("row", ENDS, ids=lambda row: f"{row.says or row.job} {row.only_if or ''}")
def test_every_row_is_somebodys_end(row: Row) -> None:
    assert any(is_row(row, facts, decide(facts, now=NOON)) for facts in some_of_everything())


def test_a_row_without_a_condition_answers_every_end_of_every_live_job() -> None:
    for state, end in product(LIVE, TrainingJobEnd):
        sure = [row for row in ENDS if row.fits(live_job(state=state), end) and row.only_if is None]
        assert sure, (state, end)


MAKES_ENDS = "core/lifecycle/decision.py"
OF_ENDS = {field.name for field in fields(End)} - {"reason", "diagnosis"}


def made_in(source: str) -> list[int]:
    """Lines that make an end, or another one of an end."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and (
            ast.unparse(node.func).rpartition(".")[2] == "End"
            or (
                ast.unparse(node.func).rpartition(".")[2] == "replace"
                and OF_ENDS & {keyword.arg for keyword in node.keywords}
            )
        )
    ]


def test_ends_are_made_by_the_decider_alone() -> None:
    makers = {
        path.relative_to(LAYER).as_posix(): made_in(path.read_text(encoding="utf-8"))
        for path in LAYER.rglob("*.py")
    }
    assert {path for path, lines in makers.items() if lines} == {MAKES_ENDS}
    assert len(makers[MAKES_ENDS]) == 1


@pytest.mark.parametrize("source", ["decision.End(becomes=x)", "replace(end, moves=True)"])
def test_a_second_maker_of_ends_is_found(source: str) -> None:
    assert made_in(source) == [1]


def test_a_program_that_leaves_before_the_window_of_its_plan_closes_comes_back_uncharged() -> None:
    end = decide(on_plan(143, CLOSES - minutes(4)), now=NOON)
    assert (end.becomes, end.reason.code, end.retry, end.diagnosis) == (S.PENDING, C.WINDOW, None, None)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(on_plan(143, CLOSES - minutes(60)), id="long before the window closes"),
        pytest.param(on_plan(1, CLOSES - minutes(4)), id="another exit code"),
        pytest.param(on_plan(None, CLOSES - minutes(4)), id="no exit code"),
        pytest.param(on_plan(143, CLOSES - minutes(4), plan_arn=None), id="not on the plan"),
    ],
)
def test_another_failure_on_a_plan_is_a_failure(facts: EndFacts) -> None:
    end = decide(facts, now=NOON)
    assert (end.becomes, end.reason.code) == (S.FAILED, FailureClass.UNKNOWN.code)
