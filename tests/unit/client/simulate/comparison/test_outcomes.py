import math
from datetime import timedelta

import pytest
from trainmaster_client.simulate.comparison.outcomes import Fate, JobOutcome, outcomes_of
from trainmaster_client.simulate.engine.past_jobs import PastJob
from trainmaster_client.simulate.engine.replays import Replay

from tests.unit.client.simulate.hand_made import attempt, history, job, replay


def outcome(past: PastJob, found: Replay) -> JobOutcome:
    return outcomes_of(history(past), found)[past.name]


@pytest.mark.parametrize(
    ("end", "fate"),
    [
        pytest.param("completed", Fate.COMPLETED, id="it has completed"),
        pytest.param("failed", Fate.FAILED, id="it has failed"),
        pytest.param("stopped", Fate.STOPPED, id="it was stopped"),
        pytest.param("live", Fate.RUNNING, id="it runs at the end"),
        pytest.param("preempted", Fate.WAITING, id="preempted, it waits again"),
        pytest.param("interrupted", Fate.WAITING, id="interrupted, it waits again"),
    ],
)
def test_the_last_attempt_says_what_became_of_a_job(end: str, fate: Fate) -> None:
    found = replay("p", attempt("a", 10, 20, 30), attempt("a", 40, 50, 60, attempt=1, end=end))
    assert outcome(job("a"), found).fate is fate


def test_a_job_waits_from_its_submission_to_its_first_start() -> None:
    found = replay("p", attempt("a", 700, 800, 900, attempt=1), attempt("a", 160, 400, 500, end="preempted"))
    one = outcome(job("a", at=100), found)
    assert (one.wait_s, one.start_s) == (60, 160)
    assert list(one.waiting_intervals(1000)) == [(100, 160), (500, 700)]


def test_a_delay_is_all_that_was_not_training_that_counted() -> None:
    one = outcome(job("a", at=100, trains=50), replay("p", attempt("a", 160, 400, 450)))
    assert one.delay_s == 450 - 100 - 50


def test_a_job_that_never_starts_waits_without_end() -> None:
    one = outcome(job("a", at=100), replay("p"))
    assert (one.fate, one.wait_s, one.delay_s) == (Fate.WAITING, math.inf, None)
    assert list(one.waiting_intervals(1000)) == [(100, 1000)]


def test_a_refused_job_has_no_wait() -> None:
    one = outcome(job("a"), replay("p", refused={"a": "no pool"}))
    assert (one.fate, one.wait_s, list(one.waiting_intervals(1000))) == (Fate.REFUSED, None, [])


def test_a_job_withdrawn_in_the_queue_waited_until_then_and_is_not_among_those_that_never_started() -> None:
    one = outcome(job("a", at=100, trains=0, withdrawn_after=timedelta(seconds=50)), replay("p"))
    assert (one.fate, one.wait_s, list(one.waiting_intervals(1000))) == (Fate.WITHDRAWN, None, [(100, 150)])
