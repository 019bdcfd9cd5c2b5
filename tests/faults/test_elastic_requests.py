"""Group R of the fault list: requests of elastic jobs that are refused when they are submitted."""

import json
from typing import Any

import pytest
from trainmaster.core.request.request import read_request
from trainmaster.core.request.validation import check_request

from tests.bodies import body, fields, tag_list
from tests.faults.submitting import refusal, refused_fields
from tests.markdown import ROOT

G5 = "ml.g5.xlarge"
ELASTIC = "trainmaster:elastic"


def elastic(
    widths: str, count: int = 8, tags: dict[str, str] | None = None, **changes: Any
) -> dict[str, Any]:
    """A request with the tag and an instance count."""
    resources = {"InstanceType": G5, "InstanceCount": count, "VolumeSizeInGB": 30}
    return body(**{"ResourceConfig": resources, "Tags": tag_list({ELASTIC: widths} | (tags or {}))} | changes)


def with_batch(widths: str, *, instance_type: str = G5, **hyperparameters: str) -> dict[str, Any]:
    resources = {"InstanceType": instance_type, "InstanceCount": 8, "VolumeSizeInGB": 30}
    return elastic(widths, ResourceConfig=resources, HyperParameters=hyperparameters)


@pytest.mark.parametrize("widths", ["2-8", "2-8:2", "2 4 8", "1-8"])
def test_R4_widths_become_shapes_the_largest_first(widths: str) -> None:
    request = elastic(widths)
    assert check_request(request) == []
    ask = read_request(request)
    assert ask.options.elastic is not None
    assert [shape.instances for shape in ask.shapes] == list(reversed(ask.options.elastic.counts))
    assert {shape.warm_key for shape in ask.shapes} == {None}, "a warm pool would be of the wrong count"


@pytest.mark.parametrize("widths", ["8-2", "0-4", "8", "2,8", "2-8:4", ""])
def test_R4_what_names_no_widths_is_a_400_at_its_value(widths: str) -> None:
    assert refused_fields(elastic(widths)) == ["Tags[0].Value"]


def test_R4_another_count_than_the_largest_width_is_a_400_that_writes_it_right() -> None:
    error = refusal(elastic("2-8", 16))
    (found,) = error.errors
    assert found.field == "Tags[0].Value"
    assert "InstanceCount is 16" in found.message
    assert "2-16" in str(found.hint)
    assert "InstanceCount to 8" in str(found.hint)


GROUPS = {
    "InstanceGroups": [{"InstanceType": G5, "InstanceCount": 8, "InstanceGroupName": "a"}],
    "VolumeSizeInGB": 30,
}
PREFERENCES = {"InstancePreferences": [{"InstanceType": G5}], "InstanceCount": 8, "VolumeSizeInGB": 30}
SPOT: dict[str, Any] = {
    "EnableManagedSpotTraining": True,
    "StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60},
}


@pytest.mark.parametrize(
    ("request_body", "named"),
    [
        pytest.param(elastic("2-8", ResourceConfig=GROUPS), "InstanceGroups", id="groups"),
        pytest.param(elastic("2-8", ResourceConfig=PREFERENCES), "InstancePreferences", id="preferences"),
        pytest.param(
            elastic("2-8", tags={"trainmaster:alternatives": f"{G5}=8"}), "alternatives", id="alternatives"
        ),
        pytest.param(elastic("2-8", **SPOT), "spot", id="spot"),
    ],
)
def test_R4_other_choices_of_instances_are_a_400_with_an_example(request_body: Any, named: str) -> None:
    (error,) = check_request(request_body)
    assert error.field == "Tags[0]"
    assert named in error.message
    assert f"{ELASTIC}=2-8" in str(error.hint)


def test_R4_all_mistakes_are_listed_at_once() -> None:
    request = elastic("2-8", 16, tags={"trainmaster:alternatives": f"{G5}=8", "priority": "x"}, **SPOT)
    assert fields(check_request(request)) == ["Tags[0]", "Tags[0]", "Tags[0].Value", "Tags[2].Value"]


@pytest.mark.parametrize(
    ("hyperparameters", "good"),
    [
        ({"batch_size": "12"}, "1 2 3 4 6"),
        ({"global-batch-size": "12", "batch_size": "8"}, "1 2 3 4 6"),
        ({"train_batch_size": '"12"'}, "1 2 3 4 6"),
    ],
)
def test_R4_a_batch_that_does_not_divide_is_a_400_naming_widths_that_do(
    hyperparameters: dict[str, str], good: str
) -> None:
    (error,) = check_request(with_batch("2 4 8", **hyperparameters))
    assert error.field == "Tags[0].Value"
    assert "has the width 8" in error.message
    assert "12" in error.message
    assert good in str(error.hint)


@pytest.mark.parametrize(
    "hyperparameters",
    [{"batch_size": "16"}, {"batch_size": "auto"}, {"per_device_batch_size": "3"}, {}, {"batch_size": "0"}],
)
def test_R4_a_batch_that_divides_or_says_nothing_is_accepted(hyperparameters: dict[str, str]) -> None:
    assert check_request(with_batch("2 4 8", **hyperparameters)) == []


def test_R4_the_training_program_divides_its_batch_among_all_gpus() -> None:
    program = {"preset": "tiny", "batch_size": "32"}
    assert check_request(with_batch("2 4 8", **program)) == []
    (error,) = check_request(with_batch("2 4 8", instance_type="ml.p5.48xlarge", **program))
    assert "has the width 8" in error.message
    tensors = program | {"tensor_parallel": "8"}
    assert check_request(with_batch("2 4 8", instance_type="ml.p5.48xlarge", **tensors)) == []


def test_R4_the_request_of_the_guide_is_valid() -> None:
    text = (ROOT / "docs/examples/elastic/request.json").read_text(encoding="utf-8")
    request = json.loads(text)
    assert check_request(request) == []
    assert [shape.instances for shape in read_request(request).shapes] == [4, 3, 2, 1]
