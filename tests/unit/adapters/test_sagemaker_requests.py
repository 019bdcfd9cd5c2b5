"""From DescribeTrainingJob back to CreateTrainingJob."""

from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster.adapters.sagemaker_answers import request_of

from tests.bodies import body

SHOWN: dict[str, Any] = {
    "TrainingJobArn": "arn:x",
    "TrainingJobStatus": "InProgress",
    "SecondaryStatus": "Training",
    "SecondaryStatusTransitions": [{"Status": "Training"}],
    "ModelArtifacts": {"S3ModelArtifacts": "s3://b/m"},
    "CreationTime": datetime(2026, 11, 2, tzinfo=UTC),
    "TrainingTimeInSeconds": 5,
    "FinalMetricDataList": [],
    "WarmPoolStatus": {"Status": "Available"},
    "TuningJobArn": "arn:t",
    "ResponseMetadata": {"HTTPStatusCode": 200},
}
"""Members of the answer that are no members of a request."""


def test_a_request_comes_back_as_it_was_sent_without_what_describe_adds() -> None:
    request = body(Tags=None)
    assert request_of({**SHOWN, **request}) == request


@pytest.mark.parametrize(
    ("shown", "sent"),
    [
        pytest.param(
            {"OutputDataConfig": {"KmsKeyId": "", "S3OutputPath": "s3://b/o"}},
            {"OutputDataConfig": {"S3OutputPath": "s3://b/o"}},
            id="an empty text",
        ),
        pytest.param({"VpcConfig": {}, "InputDataConfig": [], "Environment": {}}, {}, id="empty parts"),
        pytest.param(
            {"HyperParameters": {"flag": "", "n": "0"}},
            {"HyperParameters": {"flag": "", "n": "0"}},
            id="an empty value that its owner wrote",
        ),
        pytest.param(
            {"ResourceConfig": {"InstanceType": "ml.a.xlarge", "InstanceCount": 1, "NewMember": 1}},
            {"ResourceConfig": {"InstanceType": "ml.a.xlarge", "InstanceCount": 1}},
            id="a member that requests do not have",
        ),
        pytest.param(
            {
                "ResourceConfig": {
                    "InstancePreferences": [{"InstanceType": "ml.a.xlarge", "InstanceCount": 2}],
                    "InstanceCount": 0,
                    "SelectedInstanceType": "ml.a.xlarge",
                    "SelectedInstanceCount": 2,
                }
            },
            {
                "ResourceConfig": {
                    "InstancePreferences": [{"InstanceType": "ml.a.xlarge", "InstanceCount": 2}]
                }
            },
            id="what SageMaker took of preferences",
        ),
        pytest.param(
            {"EnableNetworkIsolation": False, "EnableManagedSpotTraining": True},
            {"EnableNetworkIsolation": False, "EnableManagedSpotTraining": True},
            id="flags",
        ),
    ],
)
def test_only_what_a_request_may_say_is_kept(shown: dict[str, Any], sent: dict[str, Any]) -> None:
    assert request_of({**SHOWN, **shown}) == sent
