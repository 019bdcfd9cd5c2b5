"""The plain priority queue that the product is compared with."""

from dataclasses import replace
from datetime import timedelta

from trainmaster.core.policy import Policy
from trainmaster_client.simulate.engine.past_jobs import PastJob
from trainmaster_client.simulate.engine.replays import ReplayedAttempt
from trainmaster_client.simulate.io.replaying import plain_queue

from tests.unit.client.simulate.replayed import HIGH, LOW, attempts, history, job, policy, times


def plain(*jobs: PastJob, policy: Policy) -> dict[tuple[str, int], ReplayedAttempt]:
    return attempts(plain_queue(history(*jobs), policy))


def test_it_stops_the_lowest_priority_for_the_head_and_loses_what_was_not_saved() -> None:
    found = plain(
        job("low", priority=LOW, trains=10_000, saves=600),
        job("normal", trains=10_000),
        job("high", at=2000, priority=HIGH),
        policy=policy(2),
    )
    # low trained from 240 to 2000: 1760 s, of which 1200 s are in checkpoints
    assert times(found["low", 0]) == (0, 240, 2090, "preempted")
    assert (found["low", 0].lost_s, found["low", 0].preempted_by) == (560, "high")
    assert found["high", 0].start_s == 2090
    # it comes back on the instances of high, loads its checkpoint in 60 s and has 8800 s to go
    assert times(found["low", 1]) == (3330, 3630, 12_430, "completed")


def test_it_stops_one_job_at_a_time() -> None:
    found = plain(
        job("a", priority=LOW, trains=9000),
        job("b", priority=LOW, at=1, trains=9000),
        job("wide", at=500, priority=HIGH, n=2),
        policy=policy(2),
    )
    assert (found["a", 0].end_s, found["b", 0].end_s, found["wide", 0].start_s) == (590, 680, 680)


def test_it_counts_what_is_already_stopping() -> None:
    found = plain(
        job("a", priority=LOW, trains=9000),
        job("b", priority=LOW, at=1, trains=9000),
        job("high", at=500, priority=HIGH),
        job("later", at=520, priority=LOW),
        policy=policy(2),
    )
    assert [one.job for one in found.values() if one.end == "preempted"] == ["a"]


def test_it_lets_nobody_pass_its_head() -> None:
    found = plain(
        job("running", trains=1000),
        job("wide", at=10, n=2),
        job("small", at=20, trains=10),
        policy=policy(2),
    )
    assert (found["wide", 0].start_s, found["small", 0].start_s) == (1240, 2480)


def test_one_stopped_before_it_trained_has_lost_nothing() -> None:
    found = plain(job("low", priority=LOW), job("high", at=100, priority=HIGH), policy=policy(1))
    assert times(found["low", 0]) == (0, 100, 190, "preempted")
    assert found["low", 0].lost_s == 0


def test_what_failed_and_came_back_is_in_the_queue_again_at_once() -> None:
    found = plain(job("a", trains=900, saves=100, breaks=[(450, "hardware")]), policy=policy(1))
    assert times(found["a", 0]) == (0, 240, 690, "failed")
    assert times(found["a", 1]) == (690, 990, 1490, "completed")


def test_a_withdrawn_job_leaves_the_queue() -> None:
    found = plain(
        job("first", trains=9000),
        job("withdrawn", at=10, trains=0, end="stopped", withdrawn_after=timedelta(seconds=500)),
        job("next", at=20),
        policy=policy(1),
    )
    assert ("withdrawn", 0) not in found
    assert found["next", 0].start_s == 9240


def test_news_on_the_way_end_nothing() -> None:
    past = history(job("a", trains=1000))
    pace = replace(past.pace, startup_news=(0.5,), upload=timedelta(seconds=60))
    found = attempts(plain_queue(replace(past, pace=pace), policy(1)))
    assert times(found["a", 0]) == (0, 240, 1240, "completed")
