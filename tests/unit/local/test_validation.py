"""Calls are checked against the service model, as the service does and botocore does not."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel, StructureShape

from local.validation import _compiled, checked
from local.wire import AwsError
from tests.integration.local.sagemaker_world import request

MISSING_ROLE = (
    "1 validation error detected: Value null at 'roleArn' failed to satisfy constraint: "
    "Member must not be null"
)


@pytest.fixture(scope="module")
def model() -> ServiceModel:
    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"))


@pytest.fixture(scope="module")
def create(model) -> Any:
    return model.operation_model("CreateTrainingJob").input_shape


def refusal(shape: StructureShape, params: dict[str, Any]) -> tuple[str, str]:
    with pytest.raises(AwsError) as caught:
        checked(shape, params)
    return caught.value.code, caught.value.message


def changed(path: str, value: Any) -> dict[str, Any]:
    """A valid request with one member changed or added."""
    body = request("job")
    *parents, last = path.split(".")
    inner = body
    for name in parents:
        inner = inner[name]
    inner[last] = value
    return body


def test_a_valid_request_passes_as_it_is(create):
    assert checked(create, request("job")) == request("job")


def test_members_that_the_model_does_not_know_and_nulls_are_dropped(create):
    body = request("job") | {"Unknown": 1, "Tags": None}
    body["ResourceConfig"]["Other"] = {"a": 1}

    assert checked(create, body) == request("job")


def test_a_missing_member_is_told_as_the_service_tells_it(create):
    body = request("job")
    del body["RoleArn"]

    assert refusal(create, body) == ("ValidationException", MISSING_ROLE)


def test_all_errors_are_told_at_once(create):
    body = changed("ResourceConfig.InstanceType", "ml.none") | {"TrainingJobName": "a_b"}
    code, message = refusal(create, body)

    assert code == "ValidationException"
    assert message.startswith("2 validation errors detected: ")
    assert "Value 'a_b' at 'trainingJobName'" in message
    assert "Value 'ml.none' at 'resourceConfig.instanceType'" in message


@pytest.mark.parametrize(
    ("path", "value", "constraint"),
    [
        pytest.param("TrainingJobName", "a" * 64, "length less than or equal to 63", id="name of 64"),
        pytest.param("TrainingJobName", "", "length greater than or equal to 1", id="empty name"),
        pytest.param("TrainingJobName", "-a", "regular expression pattern", id="name begins with a dash"),
        pytest.param("TrainingJobName", "a-", "regular expression pattern", id="name ends with a dash"),
        pytest.param("TrainingJobName", "ä", "regular expression pattern", id="umlaut in the name"),
        pytest.param("TrainingJobName", "a\n", "regular expression pattern", id="newline after the name"),
        pytest.param("RoleArn", "arn:aws:iam::1:role/x", "regular expression pattern", id="short account"),
        pytest.param("ResourceConfig.InstanceType", "ML.M5.LARGE", "enum value set", id="type in capitals"),
        pytest.param("ResourceConfig.InstanceCount", -1, "value greater than or equal to 0", id="count -1"),
        pytest.param(
            "ResourceConfig.KeepAlivePeriodInSeconds", 21601, "value less than or equal to 21600", id="keep"
        ),
        pytest.param(
            "StoppingCondition.MaxRuntimeInSeconds", 0, "value greater than or equal to 1", id="no run time"
        ),
        pytest.param("InputDataConfig", [], "length greater than or equal to 1", id="empty list"),
        pytest.param(
            "HyperParameters",
            {str(number): "" for number in range(101)},
            "length less than or equal to 100",
            id="101 hyperparameters",
        ),
        pytest.param(
            "HyperParameters",
            {"a": "x" * 2501},
            "Map value must satisfy constraint: [Member must have length less than or equal to 2500, "
            "Member must have length greater than or equal to 0, "
            "Member must satisfy regular expression pattern: .*]",
            id="long hyperparameter",
        ),
        pytest.param(
            "Environment",
            {"1A": "x"},
            "Map keys must satisfy constraint: [Member must have length less than or equal to 512, ",
            id="environment name begins with a digit",
        ),
        pytest.param(
            "Tags",
            [{"Key": "a\N{SNOWMAN}", "Value": ""}],
            "regular expression pattern",
            id="character in a tag",
        ),
    ],
)
def test_what_the_model_forbids_is_refused(create, path, value, constraint):
    code, message = refusal(create, changed(path, value))

    assert code == "ValidationException"
    assert constraint in message


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("ResourceConfig.InstanceCount", True, id="boolean for a number"),
        pytest.param("ResourceConfig.InstanceCount", "1", id="text for a number"),
        pytest.param("ResourceConfig.InstanceCount", 1.5, id="fraction for an integer"),
        pytest.param("HyperParameters", {"epochs": 1}, id="number for a hyperparameter"),
        pytest.param("HyperParameters", [], id="list for a map"),
        pytest.param("Tags", {"a": "b"}, id="map for a list"),
        pytest.param("EnableManagedSpotTraining", 1, id="number for a boolean"),
        pytest.param("ResourceConfig", "ml.m5.large", id="text for a structure"),
    ],
)
def test_a_value_of_another_type_is_a_serialization_error(create, path, value):
    assert refusal(create, changed(path, value))[0] == "SerializationException"


def test_a_command_may_have_several_lines(create):
    path = "AlgorithmSpecification.ContainerEntrypoint"

    checked(create, changed(path, ["python", "-c", "a = 1\nprint(a)"]))


def test_letters_of_all_languages_spaces_and_digits_may_stand_in_tags(create):
    tags = [{"Key": "größe ½_.:/=+-@ 東京٣", "Value": ""}]

    assert checked(create, changed("Tags", tags))["Tags"] == tags


@pytest.mark.parametrize("value", [1e300, float("nan")])
def test_a_number_that_is_no_time_is_a_serialization_error(model, value):
    shape = model.operation_model("ListTrainingJobs").input_shape

    assert refusal(shape, {"CreationTimeAfter": value})[0] == "SerializationException"


def test_every_pattern_of_the_operations_is_one_that_python_reads(model):
    operations = ("CreateTrainingJob", "ListTrainingJobs", "UpdateTrainingJob", "AddTags", "DeleteTags")
    shapes = [shape for name in operations for shape in _inside(model.operation_model(name).input_shape)]
    patterns = {shape.metadata["pattern"] for shape in shapes if "pattern" in shape.metadata}

    assert len(patterns) > 20
    for pattern in patterns:
        assert "\\p" not in _compiled(pattern).pattern


def _inside(shape: Any) -> Iterator[Any]:
    yield shape
    parts = {
        "structure": lambda: [*shape.members.values()],
        "list": lambda: [shape.member],
        "map": lambda: [shape.key, shape.value],
    }.get(shape.type_name, list)()
    for part in parts:
        yield from _inside(part)
