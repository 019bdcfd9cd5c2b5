"""The catalogue of training plans: the same for the same question, within what was asked for."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.sagemaker.plan_offerings import MOST_INSTANCES, USD_PER_INSTANCE_HOUR, offerings
from local.validation import input_shape

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
P5 = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "TargetResources": ["training-job"]}


def test_every_type_that_plans_are_sold_for_has_a_price():
    sold = input_shape("sagemaker", "SearchTrainingPlanOfferings").members["InstanceType"].metadata["enum"]

    assert set(USD_PER_INSTANCE_HOUR) == set(sold)


def test_the_same_question_has_the_same_answer_the_earliest_and_cheapest_first():
    found = offerings(P5 | {"DurationHours": 48}, NOON)

    assert found == offerings(P5 | {"DurationHours": 48}, NOON)
    assert len({offering.id for offering in found}) == 3
    assert [(offering.windows[0].begin.day, len(offering.windows)) for offering in found] == [
        (2, 2),
        (2, 1),
        (4, 1),
    ]
    fees = [offering.fee_usd for offering in found]
    assert fees == sorted(fees[:2]) + fees[2:]
    assert fees[1] == 2 * 48 * USD_PER_INSTANCE_HOUR["ml.p5.48xlarge"]


@given(
    hours=st.integers(1, 2000),
    ahead=st.integers(0, 100),
    length=st.integers(1, 100),
    minute=st.integers(0, 1439),
)
def test_windows_are_whole_days_within_what_was_asked_for(hours, ahead, length, minute):
    now = NOON + timedelta(minutes=minute)
    after, before = now + ahead * DAY, now + (ahead + length) * DAY
    question = P5 | {"DurationHours": hours, "StartTimeAfter": after, "EndTimeBefore": before}

    for offering in offerings(question, now):
        assert after <= offering.windows[0].begin
        assert offering.windows[-1].end <= before
        lengths = [window.length for window in offering.windows]
        assert all(part % DAY == timedelta() and part > timedelta() for part in lengths)
        assert timedelta(hours=hours) <= sum(lengths, timedelta()) < timedelta(hours=hours) + DAY
        assert {(window.begin.hour, window.begin.minute) for window in offering.windows} == {(11, 30)}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"InstanceCount": MOST_INSTANCES + 1}, id="more than there is"),
        pytest.param({"InstanceCount": 0}, id="nothing"),
        pytest.param({"TargetResources": ["hyperpod-cluster"]}, id="for a cluster"),
        pytest.param({"EndTimeBefore": NOON + DAY}, id="too short a time"),
        pytest.param({"TrainingPlanArn": "arn"}, id="extensions"),
    ],
)
def test_nothing_is_offered_that_is_not_sold(change):
    assert offerings(P5 | {"DurationHours": 24} | change, NOON) == []
