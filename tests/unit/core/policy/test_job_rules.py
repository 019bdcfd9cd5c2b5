"""Reading ``rules`` and a team's own lists: forms, modes, and every mistake with its path."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.image_names import Image
from trainmaster.core.policy.job_rules import (
    Allowed,
    AtMost,
    GuardMode,
    Mode,
    RequiredTag,
    RequiredTags,
    Rules,
)
from trainmaster.core.policy.patterns import parse_pattern
from trainmaster.core.request.s3_uri import S3Location

ROLE = "arn:aws:iam::111122223333:role/vision-training"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
KEYS = "arn:aws:kms:us-east-1:111122223333:key/*"


def rules(**written: Any) -> Rules:
    return parse_policy({"rules": written}).rules


def mistakes(document: dict[str, Any]) -> list[str]:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(document)
    assert all(error.message and error.hint for error in caught.value.errors)
    return [error.field for error in caught.value.errors]


def test_nothing_is_a_rule_unless_it_is_written() -> None:
    assert parse_policy({}).rules == Rules() == parse_policy({"rules": None}).rules
    assert all(getattr(Rules(), name) is None for name in Rules.__dataclass_fields__)


@pytest.mark.parametrize(
    ("key", "bare", "mapping", "rule"),
    [
        pytest.param("max_instances", 16, {"value": 16}, AtMost(value=16), id="a number"),
        pytest.param("max_runtime", "3d", {"value": "3d"}, AtMost(value=timedelta(days=3)), id="a time"),
        pytest.param(
            "max_estimated_cost_usd", 99.5, {"value": 99.5}, AtMost(value=Decimal("99.5")), id="an amount"
        ),
        pytest.param(
            "instance_types", ["ml.g5.*"], {"allow": ["ml.g5.*"]}, Allowed(allow=("ml.g5.*",)), id="types"
        ),
        pytest.param("roles", [ROLE], {"allow": [ROLE]}, Allowed(allow=(ROLE,)), id="roles"),
        pytest.param("kms_keys", [KEYS], {"allow": [KEYS]}, Allowed(allow=(KEYS,)), id="keys"),
        pytest.param("name_prefix", ["a-"], {"one_of": ["a-"]}, Allowed(allow=("a-",)), id="names"),
        pytest.param(
            "images",
            [f"{REGISTRY}/pytorch-training"],
            {"allow": [f"{REGISTRY}/pytorch-training"]},
            Allowed(allow=(Image(registry=REGISTRY, repository="pytorch-training"),)),
            id="images",
        ),
        pytest.param(
            "s3_prefixes",
            ["s3://data/team-a/"],
            {"allow": ["s3://data/team-a/"]},
            Allowed(allow=(S3Location(bucket="data", key="team-a/"),)),
            id="places in S3",
        ),
        pytest.param(
            "required_tags",
            ["owner"],
            {"tags": {"owner": {}}},
            RequiredTags(tags=(RequiredTag(key="owner"),)),
            id="tags",
        ),
        pytest.param("vpc_required", True, {}, Mode.ENFORCE, id="a rule without a value"),
        pytest.param("debugger_instances", True, {}, Mode.ENFORCE, id="a rule that forbids"),
    ],
)
def test_a_bare_value_means_enforce(key: str, bare: object, mapping: dict[str, Any], rule: object) -> None:
    assert getattr(rules(**{key: bare}), key) == rule
    assert getattr(rules(**{key: {"mode": "enforce", **mapping}}), key) == rule
    audited = getattr(rules(**{key: {"mode": "audit", **mapping}}), key)
    assert (audited if isinstance(audited, Mode) else audited.mode) is Mode.AUDIT
    assert audited != rule


@pytest.mark.parametrize("key", ["remote_debug", "session_chaining", "secrets"])
def test_a_rule_that_nobody_has_to_write_may_be_switched_off(key: str) -> None:
    modes = {mode: getattr(rules(**{key: {"mode": mode}}), key) for mode in GuardMode}
    assert modes == {mode: mode for mode in GuardMode}
    assert getattr(rules(**{key: True}), key) is GuardMode.ENFORCE
    with pytest.raises(PolicyViolationError) as caught:
        rules(**{key: False})
    assert "mode: allow" in caught.value.errors[0].hint


def test_false_switches_a_rule_off_that_asks_for_something() -> None:
    assert rules(vpc_required=False, must_fit=False) == Rules()


def test_false_is_a_mistake_where_it_could_mean_either() -> None:
    document = {"rules": {"remote_debug": False, "debugger_instances": False}}
    assert mistakes(document) == ["rules.debugger_instances", "rules.remote_debug"]


def test_required_tags_may_ask_for_values() -> None:
    written = {"phase": {"one_of": ["pretrain", "finetune"]}, "model": {"pattern": "[a-z]+"}, "owner": None}
    found = rules(required_tags={"mode": "audit", "tags": written}).required_tags
    assert found == RequiredTags(
        mode=Mode.AUDIT,
        tags=(
            RequiredTag(key="phase", one_of=("pretrain", "finetune")),
            RequiredTag(key="model", pattern=parse_pattern("[a-z]+")),
            RequiredTag(key="owner"),
        ),
    )


def test_a_team_has_rules_of_its_own_and_lists_that_are_enforced() -> None:
    team = {
        "name": "vision",
        "roles": [ROLE],
        "images": [f"{REGISTRY}/pytorch-training:2.8"],
        "s3_prefixes": ["s3://data"],
        "rules": {"max_instances": {"mode": "audit", "value": 2}},
    }
    found = parse_policy({"teams": [team]}).team("vision")
    assert found is not None
    assert found.roles == Allowed(mode=Mode.ENFORCE, allow=(ROLE,))
    assert found.images == Allowed(
        allow=(Image(registry=REGISTRY, repository="pytorch-training", tag="2.8"),)
    )
    assert found.s3_prefixes == Allowed(allow=(S3Location(bucket="data", key=""),))
    assert found.rules == Rules(max_instances=AtMost(mode=Mode.AUDIT, value=2))


def test_every_mistake_is_found_in_one_go() -> None:
    written = {
        "max_instance": 3,
        "max_instances": 0,
        "max_runtime": {"mode": "warn", "value": "3"},
        "max_estimated_cost_usd": {"mode": "audit"},
        "instance_types": ["g5.xlarge", 5],
        "roles": ["arn:aws:iam::111122223333:role/*"],
        "images": ["pytorch"],
        "kms_keys": ["alias/mine"],
        "s3_prefixes": {"allow": []},
        "vpc_required": "yes",
        "required_tags": {"tags": {"aws:x": {}, "phase": {"one_of": [], "like": "x"}, "m": {"pattern": "("}}},
    }
    assert sorted(mistakes({"rules": written})) == [
        "rules.images[0]",
        "rules.instance_types[0]",
        "rules.instance_types[1]",
        "rules.kms_keys[0]",
        "rules.max_estimated_cost_usd.value",
        "rules.max_instance",
        "rules.max_instances",
        "rules.max_runtime.mode",
        "rules.max_runtime.value",
        "rules.required_tags.tags.m.pattern",
        "rules.required_tags.tags.phase.like",
        "rules.required_tags.tags.phase.one_of",
        'rules.required_tags.tags["aws:x"]',
        "rules.roles[0]",
        "rules.s3_prefixes.allow",
        "rules.vpc_required",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("roles", ["arn:aws:iam::1:role/a"]),
        ("roles", ["arn:aws:iam::111122223333:user/a"]),
        ("roles", []),
        ("images", ["*/pytorch"]),
        ("images", [f"{REGISTRY}/*"]),
        ("images", [REGISTRY]),
        ("s3_prefixes", ["vision-data/"]),
        ("s3_prefixes", ["s3://"]),
        ("s3_prefixes", ["s3://data/a/../b"]),
        ("s3_prefixes", ["s3://data/*"]),
        ("s3_prefixes", ["https://data.s3.amazonaws.com/a"]),
        ("s3_prefixes", ["S3://data", "s3://Data"]),
    ],
)
def test_what_can_never_match_is_a_mistake(key: str, value: list[str]) -> None:
    document = {"teams": [{"name": "a", key: value}]}
    expected = [f"teams[0].{key}[{index}]" for index in range(len(value))] or [f"teams[0].{key}"]
    assert mistakes(document) == expected
