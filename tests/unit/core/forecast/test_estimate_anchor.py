"""One answer until something changes: estimates follow from the pool's state, not from who looks and when."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trainmaster.core.forecast.estimate_anchor import later_anchor, newest_fact, seed_of
from trainmaster.core.forecast.queue_estimate import WholeQueue, estimate_queue
from trainmaster.core.forecast.start_estimate import StartEstimate
from trainmaster.core.jobs.attempts import CheckpointState
from trainmaster.core.planning.snapshot import RunningJob, WaitingJob

from tests.builders import NOON, A, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.forecast.test_start_estimate import history

SLOTS = 4


def queue(runs: list[RunningJob], waits: list[WaitingJob], **fields: Any) -> WholeQueue:
    values: dict[str, Any] = {
        "snapshot": snapshot(*runs, *waits, last_end={A: NOON}),
        "waiting": tuple(sorted(waits, key=lambda job: job.rank)),
        "pool": pool(SLOTS),
        "run_times": history(60, 90, 200),
        "now": NOON,
    }
    return WholeQueue(**values | fields)


def starts(queue: WholeQueue, *, seconds: float = 0) -> dict[str, StartEstimate]:
    return dict(estimate_queue(replace(queue, now=NOON + timedelta(seconds=seconds))).by_job)


def busy(*names: str, **fields: Any) -> WholeQueue:
    """All is in use, and these jobs wait."""
    runs = [running(f"runs-{number}", minutes_ago=5) for number in range(SLOTS)]
    jobs = [waiting(name, minutes_ago=9 - place) for place, name in enumerate(names)]
    return queue(runs, jobs, **fields)


@st.composite
def queues(draw: st.DrawFn) -> WholeQueue:
    """Pools in use, with jobs of some sizes and priorities that wait."""
    ages = draw(st.lists(st.integers(0, 40), min_size=SLOTS, max_size=SLOTS))
    waits = draw(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 3), st.integers(0, 5)), max_size=4))
    return queue(
        [running(f"runs-{number}", minutes_ago=age) for number, age in enumerate(ages)],
        [
            waiting(f"waits-{number}", minutes_ago=age, n=size, priority=priority)
            for number, (age, size, priority) in enumerate(waits)
        ],
    )


@settings(max_examples=8, deadline=None)
@given(seen=queues(), seconds=st.integers(0, 300))
def test_looks_at_an_unchanged_queue_agree_until_a_start_has_passed(seen: WholeQueue, seconds: int) -> None:
    first, later = starts(seen), starts(seen, seconds=seconds)
    passed = any(start.p50 <= NOON + timedelta(seconds=seconds) for start in first.values())
    assert later == first or passed


@settings(max_examples=8, deadline=None)
@given(seen=queues(), seconds=st.integers(0, 40_000))
def test_no_start_is_expected_in_the_past(seen: WholeQueue, seconds: int) -> None:
    now = NOON + timedelta(seconds=seconds)
    assert all(now < start.p50 <= start.p90 for start in starts(seen, seconds=seconds).values())


def test_the_answer_changes_when_a_job_enters_or_ends_or_another_goes_first() -> None:
    before = starts(busy("first", "second"))
    entered = starts(busy("before", "first", "second"))
    assert entered["second"].p50 > before["second"].p50
    left = busy("first", "second")
    fewer = replace(left.snapshot, running=left.snapshot.running[1:], used=of(SLOTS - 1))
    assert starts(replace(left, snapshot=fewer))["first"].p50 < before["first"].p50
    swapped = starts(busy("second", "first"))
    assert swapped["second"].p50 < before["second"].p50


def test_what_a_pass_rewrites_while_nothing_happens_changes_nothing() -> None:
    seen = busy("first", "second")
    rewritten = replace(
        seen,
        waiting=tuple(replace(job, ver=job.ver + 7) for job in seen.waiting),
        snapshot=replace(
            seen.snapshot,
            running=tuple(
                replace(job, ver=9, lease_until=NOON, checkpoint=CheckpointState(last=NOON))
                for job in seen.snapshot.running
            ),
        ),
    )
    assert seed_of(rewritten.snapshot, rewritten.waiting) == seed_of(seen.snapshot, seen.waiting)
    assert starts(rewritten) == starts(seen)


def test_a_start_that_was_expected_and_did_not_come_moves_on_and_then_stays() -> None:
    seen = busy("first")
    expected = starts(seen)["first"].p50
    late = (expected - NOON).total_seconds() + 1
    moved = starts(seen, seconds=late)["first"].p50
    assert moved > expected
    assert starts(seen, seconds=late + 120)["first"].p50 == moved


@pytest.mark.parametrize(
    ("fact", "dated"),
    [
        pytest.param({}, NOON - minutes(5), id="the last claim"),
        pytest.param({"last_end": {A: NOON - minutes(3)}}, NOON - minutes(3), id="an end"),
        pytest.param({"last_end": {A: NOON + minutes(9)}}, NOON, id="never later than the look"),
    ],
)
def test_the_newest_fact_of_a_pool(fact: dict[str, Any], dated: datetime) -> None:
    seen = replace(busy("first").snapshot, **{"last_end": {}} | fact)
    assert newest_fact(seen, (), now=NOON) == dated


def test_the_begin_of_a_month_is_a_fact() -> None:
    seen = replace(busy("first").snapshot, last_end={})
    december = datetime.fromisoformat("2026-12-01T00:00Z")
    assert newest_fact(seen, (), now=december + minutes(90)) == december


def test_rungs_lie_ahead_and_become_longer() -> None:
    def rung(age: float) -> float:
        return (later_anchor(NOON, NOON + minutes(2), now=NOON + minutes(age)) - NOON) / minutes(1)

    assert [rung(age) for age in (2, 6.9, 7, 20)] == [7, 7, 12, 22]
    assert rung(600) - 600 <= 0.25 * 600
    assert all(rung(age) > age for age in range(2, 3000, 7))
