"""template.yaml as CloudFormation sees it: expanded by SAM's own translator, resolved for given parameters.

A reference to a resource becomes text, ``${Table}`` or ``${Table.Arn}``; everything else becomes its value.
"""

import copy
import operator
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "template.yaml"

ACCOUNT = "111122223333"
REGION = "eu-west-1"
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": "prod",
    "AWS::URLSuffix": "amazonaws.com",
}
PARAMETERS: dict[str, Any] = {
    "VpcEndpointIds": ["vpce-1a", "vpce-2b"],
    "CallerPrincipalArns": ["arn:aws:iam::111122223333:role/scientist", "arn:aws:iam::444455556666:user/ada"],
    "CallerAccounts": ["111122223333", "444455556666"],
    "AdminPrincipalArns": ["arn:aws:iam::111122223333:role/admin", "arn:aws:iam::111122223333:role/ops-*"],
    "TrainingRoleArns": ["arn:aws:iam::111122223333:role/train", "arn:aws:iam::111122223333:role/ml/*-train"],
    "LauncherRoleArns": [
        "arn:aws:iam::111122223333:role/launcher-red",
        "arn:aws:iam::111122223333:role/ml/blue",
    ],
    "CheckpointBuckets": ["arn:aws:s3:::one", "arn:aws:s3:::two"],
    "CheckpointKmsKeyArns": ["arn:aws:kms:eu-west-1:111122223333:key/checkpoints"],
    "TrainingKmsKeyArns": [
        "arn:aws:kms:eu-west-1:111122223333:key/volumes",
        "arn:aws:kms:eu-west-1:444455556666:key/others",
    ],
    "StopUnmanagedJobs": "true",
    "CreateApiGatewayLogRole": "true",
    "ProtectTable": "true",
    "OldestWaitAlarmSeconds": 86400,
    "PassesAtOnce": 3,
    "ApiReservedConcurrency": 50,
    "ScheduleReservedConcurrency": 3,
}
_NO_VALUE = object()
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "GetAtt": lambda *path: f"${{{'.'.join(path)}}}",
    "Join": lambda between, parts: between.join(map(str, parts)),
    "Split": lambda between, text: text.split(between),
    "Select": lambda index, values: values[int(index)],
    "Equals": operator.eq,
    "Not": operator.not_,
}


@cache
def source() -> dict[str, Any]:
    """The template as it is written. Shared between tests: do not change it."""
    parsed: dict[str, Any] = yaml_parse(TEMPLATE.read_text())
    return parsed


def parameters(**changed: Any) -> dict[str, Any]:
    """Every parameter's value; lists are lists, as CloudFormation hands them to the SAM transform."""
    defaults = {
        name: one["Default"].split(",") if one["Type"] == "CommaDelimitedList" else one["Default"]
        for name, one in source()["Parameters"].items()
        if "Default" in one
    }
    return {**defaults, **PARAMETERS, **changed}


def expand(values: Mapping[str, Any]) -> dict[str, Any]:
    template = copy.deepcopy(source())
    for resource in template["Resources"].values():
        for location in {"CodeUri", "ContentUri"} & resource["Properties"].keys():
            resource["Properties"][location] = "s3://bucket/key"  # as `sam package` leaves it
    translator = Translator({}, Parser(), boto_session=boto3.Session(region_name=REGION))
    expanded: dict[str, Any] = translator.translate(template, {**values, **PSEUDO})
    return expanded


class Resolver:
    """The intrinsic functions that the template uses; any other is a KeyError."""

    def __init__(self, template: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        self._known = {**PSEUDO, **values}
        self._conditions = template.get("Conditions", {})

    def resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [one for one in map(self.resolve, value) if one is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name == "Ref" or name.startswith("Fn::"):
                return self._call(name.removeprefix("Fn::"), argument)
        items = ((key, self.resolve(one)) for key, one in value.items())
        return {key: one for key, one in items if one is not _NO_VALUE}

    def condition(self, name: str) -> bool:
        holds: bool = self.resolve(self._conditions[name])
        return holds

    def _call(self, name: str, argument: Any) -> Any:
        if name == "If":
            condition, then, otherwise = argument
            return self.resolve(then if self.condition(condition) else otherwise)
        if name == "Sub":
            return self._sub(argument)
        if name == "Ref":
            return _NO_VALUE if argument == "AWS::NoValue" else self._known.get(argument, f"${{{argument}}}")
        return _FUNCTIONS[name](*self.resolve(argument))

    def _sub(self, argument: Any) -> str:
        text, own = (argument, {}) if isinstance(argument, str) else argument
        known = {**self._known, **self.resolve(own)}
        return re.sub(r"\$\{([^}]+)\}", lambda found: str(known.get(found[1], found[0])), text)


@cache
def _resolved(changed: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    values = parameters(**dict(changed))
    template = expand(values)
    resolver = Resolver(template, values)
    return {
        name: resolver.resolve(resource)
        for name, resource in template["Resources"].items()
        if "Condition" not in resource or resolver.condition(resource["Condition"])
    }


def resources(**changed: str | int) -> dict[str, Any]:
    """The resources that a deployment with these parameters makes. Shared between tests: do not change it."""
    return _resolved(tuple(sorted(changed.items())))


def of_type(stack: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Properties of the resources of one type, by logical id."""
    return {name: one.get("Properties", {}) for name, one in stack.items() if one.get("Type") == kind}


def without(value: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key not in names}
