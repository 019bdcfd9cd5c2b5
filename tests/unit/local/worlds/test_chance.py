"""What a world draws, what it counts, and how a job ends whose pending time ran out."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from local.worlds import HARSH, KIND, PendingEnd, Rates, changed, deliveries, latency, pending_end

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SEED = 7


def test_the_latencies_have_the_percentiles_of_the_world():
    drawn = sorted(latency(HARSH, Random(f"{SEED}/{each}")).total_seconds() for each in range(4000))
    assert drawn[2000] == pytest.approx(0.3, rel=0.1)
    assert drawn[3960] == pytest.approx(2.0, rel=0.2)
    assert drawn[0] > 0


def test_a_kind_world_answers_at_once_and_tells_each_event_once():
    draw = Random(SEED)
    assert latency(KIND, draw) == timedelta()
    assert latency(changed(KIND, {"latency_seconds": {"p50": 0, "p99": 0}}), draw) == timedelta()
    (only,) = deliveries(KIND, draw)
    assert (only.after, only.has_tags) == (timedelta(), True)


def test_events_come_late_twice_and_without_tags_as_often_as_the_world_says():
    drawn = [deliveries(HARSH, Random(f"{SEED}/{each}")) for each in range(2000)]
    assert sum(len(each) == 2 for each in drawn) / 2000 == pytest.approx(0.2, abs=0.03)
    assert sum(not each[0].has_tags for each in drawn) / 2000 == pytest.approx(0.1, abs=0.03)
    delays = [one.after for each in drawn for one in each]
    assert min(delays) >= timedelta()
    assert timedelta(minutes=5) < max(delays) <= timedelta(minutes=6)


def test_an_event_that_loses_its_turn_comes_up_to_a_minute_later():
    world = changed(KIND, {"events_reordered": 1, "event_delay_seconds": [10, 10]})
    delays = [deliveries(world, Random(f"{SEED}/{each}"))[0].after for each in range(100)]
    assert all(timedelta(seconds=10) <= delay <= timedelta(seconds=70) for delay in delays)
    assert len(set(delays)) == 100


def test_a_rate_lets_one_second_of_calls_through_at_once_and_then_its_rate():
    rates, allowed = Rates(), HARSH.rates
    at = [rates.take("DescribeTrainingJob", allowed, NOON) for _ in range(4)]
    assert at == [True, True, False, False]
    half = NOON + timedelta(seconds=0.5)
    assert [rates.take("DescribeTrainingJob", allowed, half) for _ in range(2)] == [True, False]
    later = NOON + timedelta(hours=1)
    assert [rates.take("DescribeTrainingJob", allowed, later) for _ in range(3)] == [True, True, False]


def test_operations_are_counted_apart_and_one_without_a_rate_not_at_all():
    rates, allowed = Rates(), HARSH.rates
    assert rates.take("CreateTrainingJob", allowed, NOON)
    assert not rates.take("CreateTrainingJob", allowed, NOON)
    assert rates.take("StopTrainingJob", allowed, NOON)
    assert all(rates.take("AddTags", allowed, NOON) for _ in range(100))


def test_a_rate_below_one_still_lets_a_call_through():
    rates, allowed = Rates(), {"CreateTrainingJob": 0.1}
    assert rates.take("CreateTrainingJob", allowed, NOON)
    assert not rates.take("CreateTrainingJob", allowed, NOON + timedelta(seconds=9))
    assert rates.take("CreateTrainingJob", allowed, NOON + timedelta(seconds=11))


@pytest.mark.parametrize(
    ("dialect", "shown", "reason"),
    [
        ("Stopped/MaxPendingTimeExceeded", ("Stopped", "MaxPendingTimeExceeded"), None),
        ("Stopped/Stopped", ("Stopped", "Stopped"), None),
        ("Stopped/MaxRuntimeExceeded", ("Stopped", "MaxRuntimeExceeded"), None),
        ("Failed/CapacityError", ("Failed", "Failed"), "CapacityError: Unable to provision"),
        ("Failed/other", ("Failed", "Failed"), "InternalServerError: The requested instances did not"),
    ],
)
def test_each_dialect_ends_a_job_in_its_own_words(dialect, shown, reason):
    end = pending_end(PendingEnd(dialect), Random(SEED))
    assert (end.status, end.secondary_status) == shown
    assert (end.failure_reason or "").startswith(reason or "")
    assert (end.failure_reason is None) == (reason is None)


def test_mixed_is_each_of_the_others_now_and_then():
    drawn = Counter(pending_end(PendingEnd.MIXED, Random(f"{SEED}/{each}")) for each in range(500))
    assert len(drawn) == 5
    assert min(drawn.values()) > 50
