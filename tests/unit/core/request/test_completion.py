"""C14 and C6: whole numbers as other tools write them, and the run time that SageMaker itself would take."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.request.completion import in_whole_numbers, with_runtime
from trainmaster.core.request.request import read_request
from trainmaster.core.request.strict_json import body_hash
from trainmaster.core.request.validation import check_request

from tests.bodies import body, fields, resources, sent

WHOLE = body(
    ResourceConfig={
        "InstanceGroups": [{"InstanceGroupName": "g", "InstanceType": "ml.m5.large", "InstanceCount": 2}],
        "VolumeSizeInGB": 10,
    },
    StoppingCondition={"MaxRuntimeInSeconds": 86_400},
    RetryStrategy={"MaximumRetryAttempts": 2},
    InputDataConfig=[
        {
            "ChannelName": "train",
            "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://data/train/"}},
            "ShuffleConfig": {"Seed": 7},
        }
    ],
    ProfilerConfig={"S3OutputPath": "s3://data/profile", "ProfilingIntervalInMilliseconds": 500},
)


def as_floats(value: Any) -> Any:
    """Every whole number with a decimal point, as pandas and YAML tools write them."""
    match value:
        case bool():
            return value
        case int():
            return float(value)
        case dict():
            return {name: as_floats(one) for name, one in value.items()}
        case list():
            return [as_floats(one) for one in value]
        case _:
            return value


def test_C14_every_whole_number_may_be_written_with_a_decimal_point() -> None:
    written = sent(as_floats(WHOLE))
    assert written != sent(WHOLE) or repr(written) != repr(WHOLE)
    assert check_request(written) == []
    assert repr(in_whole_numbers(written)) == repr(sent(WHOLE))
    assert read_request(written) == read_request(WHOLE)


def test_C14_both_ways_of_writing_are_the_same_request() -> None:
    assert body_hash(in_whole_numbers(sent(as_floats(WHOLE)))) == body_hash(sent(WHOLE))


@pytest.mark.parametrize(("value", "shown"), [(86400.5, "86400.5"), (0.1, "0.1"), (1e-9, "1e-09")])
def test_C14_what_is_no_whole_number_is_refused_and_shown(value: float, shown: str) -> None:
    (error,) = check_request(body(StoppingCondition={"MaxRuntimeInSeconds": value}))
    assert error.field == "StoppingCondition.MaxRuntimeInSeconds"
    assert (error.message, error.hint) == (f"must be a whole number, not {shown}", "round it")


@pytest.mark.parametrize("count", [0.0, -2.0, 1e300, float("inf")])
def test_C14_bounds_hold_for_them_too(count: float) -> None:
    errors = check_request(resources(InstanceType="ml.m5.large", InstanceCount=count, VolumeSizeInGB=1))
    assert set(fields(errors)) == {"ResourceConfig.InstanceCount"}


def test_C14_only_whole_numbers_are_read_so() -> None:
    whole = body(Environment={"X": 1.0}, EnableNetworkIsolation=1.0)
    assert fields(check_request(whole)) == ["Environment.X", "EnableNetworkIsolation"]
    assert in_whole_numbers(whole) == whole


@pytest.mark.parametrize("stopping", [None, {}, {"MaxPendingTimeInSeconds": 7200}])
def test_C6_without_a_run_time_it_is_sagemakers_day(stopping: dict[str, int] | None) -> None:
    whole = body(StoppingCondition=stopping)
    assert check_request(whole) == []
    assert read_request(whole).max_runtime == timedelta(days=1)
    assert with_runtime(whole, longest=None)["StoppingCondition"] == {
        **(stopping or {}),
        "MaxRuntimeInSeconds": 86_400,
    }


@pytest.mark.parametrize(("longest", "seconds"), [(timedelta(hours=12), 43_200), (timedelta(days=3), 86_400)])
def test_C6_a_default_does_not_break_the_rules(longest: timedelta, seconds: int) -> None:
    completed = with_runtime(body(StoppingCondition=None), longest=longest)
    assert completed["StoppingCondition"] == {"MaxRuntimeInSeconds": seconds}


def test_C6_a_run_time_that_is_given_stays() -> None:
    assert with_runtime(body(), longest=timedelta(seconds=1)) == body()


def test_C15_a_line_break_in_a_hyperparameter_is_named_in_one_clause() -> None:
    (error,) = check_request(body(HyperParameters={"prompt": "first line\nsecond line"}))
    assert error.field == "HyperParameters.prompt"
    assert (error.message, error.hint) == ("is not one line", "remove the line breaks")
