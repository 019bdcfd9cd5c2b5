import pytest
from trainmaster_client.simulate.comparison.audits import lost_jobs, most_held, over_capacity, wrong_training
from trainmaster_client.simulate.comparison.outcomes import outcomes_of
from trainmaster_client.simulate.engine.replays import Replay

from tests.unit.client.simulate.hand_made import TYPE, attempt, history, job, replay, two_policies, warm


def test_attempts_that_follow_each_other_at_once_hold_no_more_than_one() -> None:
    found = replay("p", attempt("a", 0, 10, 100), attempt("b", 100, 110, 200))
    assert most_held(found) == {("g5", "on-demand", TYPE): 1}
    assert over_capacity(found) == []


def test_what_is_held_above_the_capacity_is_named() -> None:
    found = replay("p", attempt("a", 0, 10, 100), attempt("b", 99, 110, 200))
    assert over_capacity(found) == ["g5, ml.g5.12xlarge (on-demand): 2 of 1"]


def test_idle_warm_instances_are_held() -> None:
    found = replay("p", attempt("a", 0, 10, 100), warm=[warm(50, 150)])
    assert over_capacity(found) == ["g5, ml.g5.12xlarge (on-demand): 2 of 1"]


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        pytest.param(
            replay("p", attempt("x", 0, 0, 9)), "x: attempts of a job that was never", id="nobody's"
        ),
        pytest.param(
            replay("p", attempt("a", 50, 60, 90)), "a: started before it was submitted", id="too early"
        ),
        pytest.param(
            replay("p", attempt("a", 100, 100, 200), attempt("a", 150, 160, 300, attempt=1)),
            "a: two of its attempts overlap",
            id="overlap",
        ),
        pytest.param(
            replay("p", attempt("a", 100, 100, 200, attempt=1)), "a: its attempts are 1", id="one is missing"
        ),
        pytest.param(replay("p", attempt("a", 100, 300, 200)), "a: an attempt ends before", id="backwards"),
    ],
)
def test_a_job_that_got_lost_is_named(found: Replay, problem: str) -> None:
    (said,) = lost_jobs(outcomes_of(history(job("a", at=100)), found), found)
    assert said.startswith(problem)


def test_a_job_that_completed_has_trained_its_time_whatever_it_lost() -> None:
    for column in two_policies().columns:
        assert wrong_training(column.outcomes) == []
        assert lost_jobs(column.outcomes, column.replay) == []


def test_a_job_that_completed_too_early_is_named() -> None:
    found = replay("p", attempt("a", 0, 240, 600))
    assert wrong_training(outcomes_of(history(job("a", trains=3600)), found)) == [
        "a: trained 360 s that lasted, has to train 3600 s"
    ]
