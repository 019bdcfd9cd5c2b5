"""EventBridge patterns select as AWS documents it."""

from typing import Any

import pytest

from local.deployment.deployment_errors import TemplateError
from local.deployment.events.patterns import check_pattern, matches

EVENT = {
    "source": "aws.sagemaker",
    "detail-type": "SageMaker Training Job State Change",
    "resources": ["arn:a", "arn:b"],
    "detail": {"TrainingJobStatus": "Completed", "Tags": {"team": "vision"}, "Count": 3},
}


@pytest.mark.parametrize(
    ("pattern", "selected"),
    [
        pytest.param({"source": ["aws.sagemaker"]}, True, id="a value"),
        pytest.param({"source": ["other", "aws.sagemaker"]}, True, id="one of several values"),
        pytest.param({"source": ["other"]}, False, id="another value"),
        pytest.param({"source": ["aws.sagemaker"], "region": ["x"]}, False, id="a key that is missing"),
        pytest.param({"resources": ["arn:b"]}, True, id="one of a list"),
        pytest.param({"detail": {"Tags": {"team": ["vision"]}}}, True, id="nested"),
        pytest.param({"source": {"x": ["y"]}}, False, id="nested where the event has a text"),
        pytest.param({"detail": {"Count": [3]}}, True, id="a number"),
        pytest.param({"detail": {"Count": ["3"]}}, False, id="a text is not a number"),
        pytest.param({"source": [{"prefix": "aws."}]}, True, id="prefix"),
        pytest.param({"source": [{"suffix": "ec2"}]}, False, id="suffix"),
        pytest.param({"source": [{"anything-but": "aws.ec2"}]}, True, id="anything but"),
        pytest.param({"source": [{"anything-but": ["aws.ec2", "aws.sagemaker"]}]}, False, id="but these"),
        pytest.param({"region": [{"anything-but": "x"}]}, False, id="anything but needs the key"),
        pytest.param({"detail": {"Tags": {"trainmaster:stack": [{"exists": False}]}}}, True, id="absent"),
        pytest.param({"detail": {"Tags": {"team": [{"exists": False}]}}}, False, id="not absent"),
    ],
)
def test_matches(pattern: dict[str, Any], *, selected: bool) -> None:
    check_pattern("Rule", pattern)
    assert matches(pattern, EVENT) is selected


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param({"source": "aws.sagemaker"}, id="a text instead of a list"),
        pytest.param({"source": []}, id="an empty list"),
        pytest.param({"detail": {"Count": [{"numeric": [">", 2]}]}}, id="an operator the twin does not know"),
        pytest.param({"source": [{"prefix": "a", "suffix": "b"}]}, id="two operators in one"),
    ],
)
def test_a_pattern_that_the_twin_would_misread_is_refused(pattern: dict[str, Any]) -> None:
    with pytest.raises(TemplateError):
        check_pattern("Rule", pattern)
