from typing import Any

import pytest
from trainmaster.core.request.validation import check_request

from tests.bodies import body, fields, resources, spot, tag_list

GROUP = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}
PREFERENCES = [
    {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1},
    {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
]


def with_image(**changes: Any) -> dict[str, Any]:
    return body(AlgorithmSpecification={"TrainingImage": "image:1", "TrainingInputMode": "File"} | changes)


MEANING_MISTAKES = [
    pytest.param(body(AlgorithmSpecification=None), ["AlgorithmSpecification"], id="no algorithm"),
    pytest.param(
        body(AlgorithmSpecification={"TrainingInputMode": "File"}),
        ["AlgorithmSpecification.TrainingImage"],
        id="no image",
    ),
    pytest.param(
        with_image(AlgorithmName="xgboost"),
        ["AlgorithmSpecification.AlgorithmName"],
        id="image and algorithm",
    ),
    pytest.param(
        spot(wait=86_399) | {"StoppingCondition": {"MaxWaitTimeInSeconds": 86_399}},
        ["StoppingCondition.MaxWaitTimeInSeconds"],
        id="a wait too short for SageMaker's own run time",
    ),
    pytest.param(spot(wait=None), ["StoppingCondition.MaxWaitTimeInSeconds"], id="spot without a wait"),
    pytest.param(
        spot(run=3600, wait=3599), ["StoppingCondition.MaxWaitTimeInSeconds"], id="a wait too short"
    ),
    pytest.param(
        body(StoppingCondition={"MaxRuntimeInSeconds": 1, "MaxWaitTimeInSeconds": 2}),
        ["StoppingCondition.MaxWaitTimeInSeconds"],
        id="a wait without spot",
    ),
    pytest.param(body(ResourceConfig=None), ["ResourceConfig"], id="no resources"),
    *(
        pytest.param(body(CheckpointConfig={"S3Uri": uri}), ["CheckpointConfig.S3Uri"], id=f"S3: {why}")
        for uri, why in (
            ("https://bucket.s3.amazonaws.com/a", "another scheme"),
            ("s3://Bucket/a", "a bucket in upper case"),
            ("s3://bucket/a ", "a space behind it"),
            ("s3://buc ket/a", "a space in the bucket"),
        )
    ),
    pytest.param(
        resources(InstanceType="ml.p5.48xlarge"), ["ResourceConfig.InstanceCount"], id="a type, no count"
    ),
    pytest.param(resources(InstanceCount=1), ["ResourceConfig"], id="a count, no type"),
    pytest.param(resources(InstanceGroups=[]), ["ResourceConfig.InstanceGroups"], id="no group"),
    pytest.param(
        resources(InstanceGroups=[GROUP, GROUP]),
        ["ResourceConfig.InstanceGroups[1].InstanceGroupName"],
        id="two groups of one name",
    ),
    pytest.param(
        resources(InstanceGroups=[GROUP | {"InstanceCount": 0}]),
        ["ResourceConfig.InstanceGroups[0].InstanceCount"],
        id="an empty group",
    ),
    pytest.param(
        resources(InstanceGroups=[GROUP], InstanceCount=2),
        ["ResourceConfig.InstanceCount"],
        id="groups and a count",
    ),
    pytest.param(
        resources(InstancePreferences=[PREFERENCES[0], PREFERENCES[0]]),
        ["ResourceConfig.InstancePreferences[1].InstanceType"],
        id="one type preferred twice",
    ),
    pytest.param(
        resources(InstancePreferences=PREFERENCES, InstanceCount=1),
        [f"ResourceConfig.InstancePreferences[{index}].InstanceCount" for index in (0, 1)],
        id="counts in both places",
    ),
    pytest.param(
        resources(InstancePreferences=[{"InstanceType": "ml.p5.48xlarge"}]),
        ["ResourceConfig.InstancePreferences[0].InstanceCount"],
        id="counts in neither place",
    ),
    pytest.param(
        spot() | {"ResourceConfig": {"InstancePreferences": PREFERENCES}},
        ["ResourceConfig.InstancePreferences"],
        id="preferences on spot",
    ),
    pytest.param(
        resources(InstancePreferences=PREFERENCES, InstancePlacementConfig={"EnableMultipleJobs": True}),
        ["ResourceConfig.InstancePlacementConfig"],
        id="preferences with a placement",
    ),
    pytest.param(
        resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, SelectedInstanceType="ml.p5.48xlarge"),
        ["ResourceConfig.SelectedInstanceType"],
        id="a field that SageMaker only answers",
    ),
    pytest.param(
        resources(InstanceGroups=[GROUP], KeepAlivePeriodInSeconds=60),
        ["ResourceConfig.KeepAlivePeriodInSeconds"],
        id="a warm pool of groups",
    ),
    pytest.param(
        body(Tags=tag_list({"trainmaster:alternatives": "ml.g5.xlarge=1"}))
        | {"ResourceConfig": {"InstanceGroups": [GROUP]}},
        ["Tags[0]"],
        id="alternatives to groups",
    ),
]


@pytest.mark.parametrize(("whole", "expected"), MEANING_MISTAKES)
def test_a_mistake_of_meaning_is_named_with_advice(whole: dict[str, Any], expected: list[str]) -> None:
    errors = check_request(whole)
    assert fields(errors) == expected
    assert all(error.hint for error in errors)
