import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.errors import InvalidRequestError
from trainmaster.core.request.request import read_request
from trainmaster.core.request.strict_json import body_hash
from trainmaster.core.request.validation import check_request, check_shape, require_valid

from tests.bodies import body, fields, resources, spot, tag_list, tags

GROUP = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}
PREFERENCES = [
    {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1},
    {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
]


def with_image(**changes: Any) -> dict[str, Any]:
    return body(AlgorithmSpecification={"TrainingImage": "image:1", "TrainingInputMode": "File"} | changes)


def with_hyperparameters(**pairs: Any) -> dict[str, Any]:
    return body(HyperParameters=pairs)


VALID = [
    pytest.param(body(), id="the plain request"),
    pytest.param(body(Tags=None, HyperParameters=None, Environment=None), id="nothing optional"),
    pytest.param(body(Tags=[]), id="no tags"),
    pytest.param(
        resources(InstanceType="ml.p99.colossal", InstanceCount=7), id="a type newer than the model"
    ),
    pytest.param(resources(InstanceGroups=[GROUP, GROUP | {"InstanceGroupName": "b"}]), id="groups"),
    pytest.param(resources(InstancePreferences=PREFERENCES), id="preferences, each with its count"),
    pytest.param(
        resources(InstancePreferences=[{"InstanceType": "ml.p5.48xlarge"}], InstanceCount=2),
        id="preferences with one count for all",
    ),
    pytest.param(spot(), id="managed spot"),
    pytest.param(spot(run=3600, wait=3600), id="managed spot that may not wait"),
    pytest.param(
        with_image(ContainerEntrypoint=["python", "-c", "print('\u00e4 \U0001f600')"]), id="free text"
    ),
    pytest.param(body(Environment={"SCRIPT": "one\n\ttwo\r\n"}), id="lines in an environment value"),
    pytest.param(with_hyperparameters(text="\u202eRTL \U0001f600"), id="odd but harmless hyperparameter"),
    pytest.param(
        body(Tags=tag_list({"Projekt\u00a0\u4e2d\u0661": "\u00e4 1.2:/=+-@_"})),
        id="letters of the world in tags",
    ),
    pytest.param(
        body(Tags=tag_list({"Priority": "high"})), id="a tag of the user's that only resembles ours"
    ),
]


@pytest.mark.parametrize("whole", VALID)
def test_what_sagemaker_takes_and_we_can_queue_is_valid(whole: dict[str, Any]) -> None:
    assert check_request(whole) == []
    require_valid(whole)


SHAPE_MISTAKES = [
    pytest.param(
        body(Resourceconfig={}), "Resourceconfig", "did you mean ResourceConfig?", id="typo at the top"
    ),
    pytest.param(body(zebra=1), "zebra", "fields here: TrainingJobName", id="unknown and like nothing"),
    pytest.param(
        resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, InstanceCuont=2),
        "ResourceConfig.InstanceCuont",
        "did you mean InstanceCount?",
        id="typo inside",
    ),
    pytest.param(
        body(InputDataConfig=[{"ChannelName": "a", "DataSource": {"S3Datasource": {}}}]),
        "InputDataConfig[0].DataSource.S3Datasource",
        "S3DataSource",
        id="typo in a list",
    ),
    pytest.param(body(RoleArn=None), "RoleArn", "full ARN", id="required at the top"),
    pytest.param(body(OutputDataConfig={}), "OutputDataConfig.S3OutputPath", "s3://", id="required inside"),
    pytest.param(body(ResourceConfig=[]), "ResourceConfig", "{...}", id="a list for an object"),
    pytest.param(body(RoleArn=None) | {"RoleArn": None}, "RoleArn", "full ARN", id="null"),
    pytest.param(body(InputDataConfig={}), "InputDataConfig", "[...]", id="an object for a list"),
    pytest.param(body(InputDataConfig=[]), "InputDataConfig", "leave the field out", id="a list too short"),
    pytest.param(
        body(EnableNetworkIsolation="true"), "EnableNetworkIsolation", "without quotes", id="a string"
    ),
    pytest.param(body(EnableNetworkIsolation=1), "EnableNetworkIsolation", "true or false", id="1 for true"),
    pytest.param(
        resources(InstanceType="ml.p5.48xlarge", InstanceCount=True),
        "ResourceConfig.InstanceCount",
        "without quotes",
        id="true for 1",
    ),
    pytest.param(
        resources(InstanceType="ml.p5.48xlarge", InstanceCount=1.5),
        "ResourceConfig.InstanceCount",
        "round it",
        id="1.5 for a count",
    ),
    pytest.param(
        resources(InstanceType="ml.p5.48xlarge", InstanceCount=2**31),
        "ResourceConfig.InstanceCount",
        "range",
        id="beyond 32 bits",
    ),
    pytest.param(
        body(RetryStrategy={"MaximumRetryAttempts": 31}),
        "RetryStrategy.MaximumRetryAttempts",
        "range",
        id="maximum",
    ),
    pytest.param(
        with_image(TrainingInputMode="file"), "AlgorithmSpecification.TrainingInputMode", "File", id="enum"
    ),
    pytest.param(
        body(OutputDataConfig={"S3OutputPath": "vision/out"}),
        "OutputDataConfig.S3OutputPath",
        "s3://",
        id="S3",
    ),
    pytest.param(body(RoleArn=body()["RoleArn"] + "\n"), "RoleArn", "full ARN", id="a line break at the end"),
    pytest.param(
        body(OutputDataConfig={"S3OutputPath": "s3://b", "KmsKeyId": "k k"}),
        "OutputDataConfig.KmsKeyId",
        "[a-zA-Z0-9:/_-]*",
        id="a pattern without words of ours",
    ),
    pytest.param(
        body(VpcConfig={"Subnets": [], "SecurityGroupIds": ["sg-1"]}),
        "VpcConfig.Subnets",
        "leave",
        id="no subnet",
    ),
    pytest.param(
        body(VpcConfig={"Subnets": ["subnet-1"] * 17, "SecurityGroupIds": ["sg-1"]}),
        "VpcConfig.Subnets",
        "shorter",
        id="17 subnets",
    ),
    pytest.param(
        body(VpcConfig={"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"] * 6}),
        "VpcConfig.SecurityGroupIds",
        "shorter",
        id="6 security groups",
    ),
    pytest.param(
        with_hyperparameters(lr=0.1), "HyperParameters.lr", "as a string", id="a number as hyperparameter"
    ),
    pytest.param(with_hyperparameters(a="one\ntwo"), "HyperParameters.a", "line breaks", id="two lines"),
    pytest.param(
        with_hyperparameters(a="one\u2028two"), "HyperParameters.a", "line breaks", id="two lines by U+2028"
    ),
    pytest.param(with_hyperparameters(a="\x00"), "HyperParameters.a", "remove", id="NUL"),
    pytest.param(with_hyperparameters(a="\x85"), "HyperParameters.a", "remove", id="a C1 control"),
    pytest.param(with_hyperparameters(a="\ud800"), "HyperParameters.a", "remove", id="a lone surrogate"),
    pytest.param(body(Environment={"1A": "x"}), "Environment.1A", "no digit first", id="an environment name"),
    pytest.param(body(Environment={"A B": "x"}), 'Environment["A B"]', "letters", id="a name with a space"),
    pytest.param(body(Tags=tags(a="\U0001f600")), "Tags[0].Value", "letters", id="an emoji in a tag"),
    pytest.param(
        body(Tags=tag_list({"\u200fa": "b"})), "Tags[0].Key", "letters", id="a right-to-left mark in a tag"
    ),
]


@pytest.mark.parametrize(("whole", "field", "advice"), SHAPE_MISTAKES)
def test_a_mistake_of_shape_is_named_once_with_advice(whole: dict[str, Any], field: str, advice: str) -> None:
    (error,) = check_request(whole)
    assert error.field == field
    assert advice in error.hint
    assert check_shape(whole) == [error]


def test_all_mistakes_are_listed_at_once() -> None:
    whole = body(
        TrainingJobName="a_b",
        Resourceconfig={},
        ResourceConfig={"InstanceType": "ml.p5.48xlarge", "InstanceCount": 0},
        Tags=tags(priority="high"),
        HyperParameters={"lr": 0.1},
    )
    assert sorted(fields(check_request(whole))) == [
        "HyperParameters.lr",
        "ResourceConfig.InstanceCount",
        "Resourceconfig",
        "Tags[0].Value",
        "TrainingJobName",
    ]
    with pytest.raises(InvalidRequestError) as caught:
        require_valid(whole)
    assert "and 4 more" in caught.value.detail


def test_a_hostile_body_gets_fifty_mistakes_and_costs_no_more() -> None:
    whole = body() | {f"unknown{number}": "x" * 50 for number in range(2000)}
    assert len(check_request(whole)) == len(check_shape(whole)) == 50
    assert len(check_request(body(Tags=tag_list({f"aws:{number}": "" for number in range(2000)})))) == 50


@pytest.mark.parametrize("place", ["HyperParameters", "Environment"])
@pytest.mark.parametrize("value", ["\x00canary", "canary\ud800", "canary" * 1000, ["canary"]])
def test_no_answer_repeats_what_stands_in_hyperparameters_and_environment(place: str, value: object) -> None:
    errors = check_request(body(**{place: {"name": value}}))
    assert fields(errors) == [f"{place}.name"]
    assert "canary" not in str(errors).lower()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 5000)
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "ml.g5.xlarge", "s3://b/p", "AKIAIOSFODNN7EXAMPLE", "priority", "1001"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from(sorted(body())), inner, max_size=3)
    ),
    max_leaves=8,
)
RICH = body(
    ResourceConfig={"InstanceGroups": [GROUP]},
    VpcConfig={"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
    InputDataConfig=[
        {"ChannelName": "a", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b"}}}
    ],
    CheckpointConfig={"S3Uri": "s3://b/checkpoints"},
    DebugRuleConfigurations=[{"RuleConfigurationName": "r", "RuleEvaluatorImage": "i"}],
)


def places(value: object) -> Iterator[tuple[Any, Any]]:
    """Every container in a document with each of its keys or indexes."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@given(json_values)
def test_any_json_gets_an_answer(value: Any) -> None:
    for error in check_request(value):
        assert error.field
        assert error.message
        assert error.hint


@given(
    st.sampled_from([body(), RICH, spot(), resources(InstancePreferences=PREFERENCES)]),
    json_values,
    st.data(),
)
def test_a_valid_request_with_one_value_replaced_is_refused_or_can_be_read(
    whole: dict[str, Any], value: Any, data: st.DataObject
) -> None:
    changed = json.loads(json.dumps(whole))
    container, key = data.draw(st.sampled_from(list(places(changed))))
    container[key] = value
    if not check_request(changed):
        assert read_request(changed).vector
        assert len(body_hash(changed)) == 64
