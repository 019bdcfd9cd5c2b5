"""Jobs whose role's starts pause delay nobody, and at most one of them tries, in its turn."""

from dataclasses import replace
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.actions import Preempt, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.refusal_records import RoleStarts, StartPause
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster_client.simulate.engine.idle_plans import may_act

from tests.builders import NOON, minutes
from tests.properties.pools import Case, always, cases

PAUSED, OTHER = "0a1b", "ffff"


def paused(*, is_due: bool) -> RoleStarts:
    pause = StartPause(
        since=NOON - minutes(9),
        number=3,
        code="AccessDeniedException",
        message="AccessDeniedException: no",
        team="vision",
        next_probe_at=NOON - minutes(1) if is_due else NOON + minutes(1),
    )
    return RoleStarts(role_arn="arn:aws:iam::1:role/r", ver=3, number=3, at=NOON - minutes(9), pause=pause)


@st.composite
def with_pauses(draw: st.DrawFn) -> tuple[Case, bool]:
    """Some of those that wait have the role; some of them were refused before."""
    case, is_due = draw(cases()), draw(st.booleans())
    waiting = tuple(
        replace(
            job,
            role=draw(st.sampled_from([PAUSED, PAUSED, OTHER, None])),
            turned_down=draw(st.sampled_from([None, None, 1, 4])),
        )
        for job in case.snapshot.waiting
    )
    snapshot = replace(
        case.snapshot, waiting=waiting, paused=False, role_starts={PAUSED: paused(is_due=is_due)}
    )
    return replace(case, snapshot=snapshot), is_due


def roles(snapshot: Snapshot) -> dict[str, str | None]:
    return {job.name: job.role for job in snapshot.waiting}


@always
@given(drawn=with_pauses())
def test_at_most_one_job_of_a_paused_role_starts_and_only_when_its_try_is_due(
    drawn: tuple[Case, bool],
) -> None:
    case, is_due = drawn
    decided = plan(case.snapshot, case.pool, now=NOON)
    role_of = roles(case.snapshot)
    starts = [one for one in decided.actions if isinstance(one, Start)]
    tries = [one for one in starts if role_of[one.job.name] == PAUSED]
    event(f"tries: {len(tries)}")
    assert len(tries) <= int(is_due)
    assert all(one.probes_role == PAUSED for one in tries)
    assert all(one.probes_role is None for one in starts if one not in tries)


@always
@given(drawn=with_pauses())
def test_refused_jobs_and_those_of_a_paused_role_preempt_nobody(drawn: tuple[Case, bool]) -> None:
    case, _ = drawn
    kept_back = {
        job.name for job in case.snapshot.waiting if job.role == PAUSED or job.turned_down is not None
    }
    preempts = [one for one in plan(case.snapshot, case.pool, now=NOON).actions if isinstance(one, Preempt)]
    event(f"preempts: {bool(preempts)}")
    assert kept_back.isdisjoint(one.job.name for one in preempts)


@always
@given(drawn=with_pauses())
def test_a_paused_role_takes_no_start_from_the_others_unless_one_of_its_jobs_tries(
    drawn: tuple[Case, bool],
) -> None:
    """Whether its jobs wait there or not: others start all the same."""
    case, is_due = drawn
    if is_due:
        return
    gone = frozenset(name for name, role in roles(case.snapshot).items() if role == PAUSED)
    left: dict[str, Any] = {
        "waiting": tuple(job for job in case.snapshot.waiting if job.name not in gone),
        "gone_preemptors": case.snapshot.gone_preemptors | gone,
    }
    without = plan(replace(case.snapshot, **left), case.pool, now=NOON)
    beside = plan(case.snapshot, case.pool, now=NOON)

    def started(actions: Any) -> set[str]:
        return {one.job.name for one in actions if isinstance(one, Start)}

    if case.pool.quotas or case.snapshot.warm_pools or case.snapshot.past_use:
        return  # who covers a quota, and whose warm pool is kept, depends on all that wait
    event("compared")
    assert started(beside.actions) == started(without.actions)


@always
@given(drawn=with_pauses())
def test_every_job_that_waits_for_a_paused_role_says_so(drawn: tuple[Case, bool]) -> None:
    case, is_due = drawn
    decided = plan(case.snapshot, case.pool, now=NOON)
    if case.snapshot.blocked or is_due:
        return
    for job in case.snapshot.waiting:
        if job.role == PAUSED:
            assert decided.reasons[job.name].code is ReasonCode.REFUSED


@always
@given(drawn=with_pauses())
def test_nothing_is_decided_where_a_glance_says_that_nothing_can_be(drawn: tuple[Case, bool]) -> None:
    case, _ = drawn
    if not may_act(case.snapshot, case.pool, now=NOON):
        assert plan(case.snapshot, case.pool, now=NOON).actions == ()
