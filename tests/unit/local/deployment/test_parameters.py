"""Stack parameters: defaults, overrides, constraints."""

from typing import Any

import pytest

from local.deployment.deployment_errors import ParameterError
from local.deployment.parameters import parameter_values

DECLARED: dict[str, dict[str, Any]] = {
    "Days": {"Type": "Number", "Default": 90, "MinValue": 1, "MaxValue": 365},
    "Flag": {"Type": "String", "AllowedValues": ["true", "false"], "Default": "false"},
    "Ids": {
        "Type": "CommaDelimitedList",
        "AllowedPattern": "^vpce-[0-9a-z]+$",
        "ConstraintDescription": "ids",
    },
    "Empty": {"Type": "CommaDelimitedList", "Default": ""},
}


def test_given_values_win_over_defaults_and_lists_are_split() -> None:
    values = parameter_values(DECLARED, {"Days": "7", "Ids": "vpce-1, vpce-2"})
    assert values == {"Days": "7", "Flag": "false", "Ids": ["vpce-1", "vpce-2"], "Empty": []}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        pytest.param({}, "Ids", id="no value at all"),
        pytest.param({"Ids": "vpce-1", "Dayz": "7"}, "Dayz", id="not declared"),
        pytest.param({"Ids": "vpce-1,x"}, "Ids", id="one item of a list does not match"),
        pytest.param({"Ids": "vpce-1", "Days": "0"}, "Days", id="too small"),
        pytest.param({"Ids": "vpce-1", "Days": "many"}, "Days", id="not a number"),
        pytest.param({"Ids": "vpce-1", "Flag": "yes"}, "Flag", id="not one of the allowed values"),
    ],
)
def test_what_cloudformation_would_refuse_is_refused_by_name(given: dict[str, str], named: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parameter_values(DECLARED, given)
    assert caught.value.name == named


def test_a_type_the_twin_does_not_know_is_refused() -> None:
    with pytest.raises(ParameterError):
        parameter_values({"Key": {"Type": "AWS::EC2::KeyPair::KeyName"}}, {"Key": "k"})
