"""The values of a world: what is read, what is refused, what the two worlds are."""

import dataclasses
import json
import re

import pytest

from local.worlds import HARSH, KIND, VALUES, Latency, PendingEnd, World, WorldError, changed, shown


def test_each_value_of_a_world_stands_in_the_table_once():
    assert [value.name for value in VALUES] == [field.name for field in dataclasses.fields(World)]


def test_the_harsh_world_is_what_its_contract_says():
    assert HARSH.max_instances_per_job == 20
    assert HARSH.max_runtime_seconds == 432_000
    assert HARSH.max_keep_alive_seconds == 3_600
    assert HARSH.warm_pool_quota == 0
    assert HARSH.rates == {
        "CreateTrainingJob": 1,
        "DescribeTrainingJob": 2,
        "ListTrainingJobs": 2,
        "StopTrainingJob": 1,
    }
    assert HARSH.latency_seconds == Latency(p50=0.3, p99=2)
    assert HARSH.read_delay_seconds == 5
    assert HARSH.pending_end is PendingEnd.MIXED


def test_what_is_shown_of_a_world_can_be_set_again():
    document = json.loads(json.dumps(shown(HARSH)))
    assert changed(KIND, document) == HARSH
    assert document["latency_seconds"] == {"p50": 0.3, "p99": 2}


def test_a_number_is_a_quota_for_each_capacity_type_by_itself():
    world = changed(KIND, {"quotas": {"ml.m5.xlarge": 4, "ml.g5.xlarge": {"spot": 2}}})
    assert world.quotas == {"ml.m5.xlarge": {"on-demand": 4, "spot": 4}, "ml.g5.xlarge": {"spot": 2}}


def test_null_takes_a_limit_away():
    assert changed(HARSH, {"max_instances_per_job": None, "pending_end": None}) == dataclasses.replace(
        HARSH, max_instances_per_job=None, pending_end=None
    )


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        pytest.param("rate", {}, "is no value of a world; there are quotas, ", id="unknown"),
        pytest.param("quotas", 4, "must be a map", id="quotas of no type"),
        pytest.param("quotas", {"m5": 1}, "'m5' is no instance type", id="a type without ml."),
        pytest.param("quotas", {"ml.m5.xlarge": -1}, "ml.m5.xlarge must be a whole", id="a quota below 0"),
        pytest.param("quotas", {"ml.m5.xlarge": {"spots": 1}}, "on-demand and spot", id="another capacity"),
        pytest.param("max_instances_per_job", 2.5, "must be a whole number", id="half an instance"),
        pytest.param("max_instances_per_job", True, "or null for none", id="true"),
        pytest.param("missing_types", "ml.m5.xlarge", "must be a list", id="a type without its list"),
        pytest.param("rates", {"Create": 1}, "Create is no operation; there are Create", id="an operation"),
        pytest.param("rates", {"StopTrainingJob": 0}, "a second above 0", id="never"),
        pytest.param("latency_seconds", {"p50": 2, "p99": 1}, "not above p99", id="percentiles crossed"),
        pytest.param("latency_seconds", {"p50": 2}, "a map of p50 and p99", id="one percentile"),
        pytest.param("read_delay_seconds", float("nan"), "must be a number from 0", id="not a number"),
        pytest.param("event_delay_seconds", [300, 0], "the least and the most", id="a span turned round"),
        pytest.param("event_delay_seconds", 300, "a list of two numbers", id="one number for a span"),
        pytest.param("events_doubled", 1.5, "must be a number from 0 to 1", id="more than all"),
        pytest.param("pending_end", "Stopped", "Stopped/MaxPendingTimeExceeded", id="no dialect"),
        pytest.param("pending_end", [], "must be one of", id="a list for a dialect"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(name, value, problem):
    with pytest.raises(WorldError, match=re.escape(problem)) as refused:
        changed(KIND, {name: value})
    assert refused.value.name == name
