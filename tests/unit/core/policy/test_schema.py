"""The published JSON Schema says what the parser of the policy says, as far as a schema can."""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # its stubs are not installed
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy

from tests.markdown import ROOT, blocks, codes, table, text_of

SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/policy.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
P5 = "ml.p5.48xlarge"
ARN = "arn:aws:iam::111122223333:role/vision-*"
Path = tuple[str | int, ...]
POOL: Path = ("pools", 0)
TEAM: Path = ("teams", 0)

ROLE = "arn:aws:iam::111122223333:role/vision-training"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training"
RULES: dict[str, Any] = {
    "required_tags": {"mode": "audit", "tags": {"phase": {"one_of": ["pretrain"], "pattern": "[a-z]+"}}},
    "instance_types": {"mode": "enforce", "allow": [P5, "ml.g5.*"]},
    "max_instances": {"mode": "enforce", "value": 16},
    "max_runtime": {"mode": "enforce", "value": "3d"},
    "max_estimated_cost_usd": {"mode": "audit", "value": 20000},
    "spot_needs_checkpoint": {"mode": "enforce"},
    "vpc_required": {"mode": "audit"},
    "network_isolation": {"mode": "audit"},
    "traffic_encryption": {"mode": "audit"},
    "single_az_when_distributed": {"mode": "audit"},
    "roles": {"mode": "enforce", "allow": [ROLE]},
    "images": {"mode": "enforce", "allow": [IMAGE]},
    "s3_prefixes": {"mode": "enforce", "allow": ["s3://vision-data/"]},
    "kms_keys": {"mode": "enforce", "allow": ["arn:aws:kms:us-east-1:111122223333:key/*"]},
    "debugger_instances": {"mode": "enforce"},
    "remote_debug": {"mode": "audit"},
    "session_chaining": {"mode": "allow"},
    "secrets": {"mode": "audit"},
    "name_prefix": {"mode": "audit", "one_of": ["vision-"]},
    "must_fit": {"mode": "audit"},
}

PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
FULL: dict[str, Any] = {
    "version": 1,
    "pools": [
        {
            "name": "p5",
            "capacity": {P5: 4},
            "spot_capacity": {"ml.g5.12xlarge": 8},
            "calendar": [
                {
                    "every": "Mon-Fri 08:00-18:00",
                    "timezone": "Europe/Berlin",
                    "capacity": {P5: 2},
                    "when_lowered": "wait",
                },
                {"from": "2026-12-24T00:00Z", "to": "2026-12-27T00:00+01:00", "capacity": {P5: 0}},
            ],
            "overrides": {
                "role_arn": ROLE,
                "subnets": ["subnet-0a1b2c3d"],
                "security_group_ids": ["sg-0a1b2c3d"],
                "volume_size_in_gb": 200,
                "tags": {"cost-center": "research-7"},
            },
            "plans": [{"arn": PLAN, "teams": ["vision"], "drain": "20m", "fee_usd": 41_000}],
            "reservations": [
                {
                    "name": "demo-day",
                    "team": "vision",
                    "from": "2026-12-01T08:00Z",
                    "to": "2026-12-01T20:00+01:00",
                    "instances": {P5: 1},
                }
            ],
            "order": {
                "aging": {"per": "12h", "add": 2},
                "backfill": False,
                "shortest_first": True,
                "fair_share": {"half_life": "14d", "weight": 10, "shares": {"vision": 3}},
            },
            "preemption": {
                "enabled": False,
                "min_priority_gap": 10,
                "min_runtime": "15m",
                "preempt_delay": "5m",
                "max_per_job": 5,
                "needs_checkpoint": True,
                "cost": {
                    "enabled": True,
                    "double_every": 50,
                    "lost_work": 2,
                    "restart": "10m",
                    "small_loss": "1m",
                    "unsaved": "12h",
                    "longest_wait": "2m",
                },
            },
            "quotas": {"vision": {"nominal": {P5: 2}, "borrowing_limit": {P5: 1}}, "language": 1},
            "warm_pool": {"keep_alive": "10m", "retain": "1m", "max_idle": "30m"},
            "elastic": {"min_gain": "15m", "snooze": "1h"},
            "limits": {
                "max_waiting": 100,
                "max_submissions_per_minute": 10,
                "max_parents": 9,
                "max_array_tasks": 500,
                "max_hold_open": "30m",
                "max_reads_per_minute": 60,
            },
            "capacity_wait": "1h",
        }
    ],
    "teams": [
        {
            "name": "vision",
            "principals": [ARN],
            "max_priority": 500,
            "budget": {"usd_per_month": 50000, "at_limit": "spot"},
            "rules": copy.deepcopy(RULES),
            "roles": [ROLE],
            "launcher_role": ROLE,
            "images": [IMAGE],
            "s3_prefixes": ["s3://vision-data/"],
        },
        {"name": "language"},
    ],
    "admins": [ARN],
    "prices": {P5: 60.5},
    "spot": {
        "max_wait": "2h",
        "max_interruptions": 3,
        "min_progress_ratio": 0.5,
        "count_type": True,
        "fallback": "on-demand",
    },
    "unmanaged_jobs": {"then": "stop", "except_principals": [ARN], "except_tuning_jobs": False},
    "idle": {"gpu_below_percent": 5, "for": "30m", "period": "15m", "then": "requeue", "warn_first": "5m"},
    "loss": {
        "metric": "val:loss",
        "non_finite": "stop",
        "divergence": {"factor": 2.5, "then": "stop"},
        "plateau": {"for": "2h", "min_delta": 0.01, "then": "stop"},
        "warn_first": "20m",
    },
    "utilization": {"gpu_below_percent": 60, "for": "2h", "then": "notify", "warn_first": "2h"},
    "checkpoints": {"max_age": "1h"},
    "recovery": {
        "min_runtime": "1h",
        "max_retries": 5,
        "backoff": {"first": "2m", "max": "1h"},
        "retry_classes": ["service"],
        "on_oom": {"batch": ["batch_size"], "accumulation": ["accumulation_steps"]},
    },
    "notifications": {"email": ["ml@example.com"], "events": False},
    "rules": RULES,
}
"""Every key there is."""

PROBES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 999, 1000, 1001, 10**6, 10**6 + 1, 10**9, 10**9 + 1, 2.0, 0.5, 0.01),
    *(0.009, 0.0001, 0.00009, "", "off", "on", "wait", "spot", "5", "0s", "1s", "31m", "24h", "9999999999s"),
    *("-5m", "1.5h", P5, "p5.48xlarge", ARN, "arn:aws:iam::1:role/x", "a#b", "p" * 63, "p" * 64),
    *([], [ARN], ["x"], [1], [None], [{}], [{"name": "x"}], {}, {P5: 1}, {P5: -1}, {P5: None}),
    *({"p5.48xlarge": 1}, {"vision": 1}, {"vision": {}}, {"vision": {"nominal": None}}, {"a#b": 1}),
    *(
        {"usd_per_month": 1},
        {"per": "1h"},
        "stop",
        "requeue",
        "notify",
        "adopt",
        "none",
        "service",
        ["service"],
    ),
    *(
        ["a@example.com"],
        ["k"],
        [""],
        ["k" * 257],
        {"batch": ["k"]},
        {"for": "20m"},
        {"first": "1m"},
        100,
        101,
    ),
    *("audit", {"mode": "audit"}, {"mode": "off"}, {"value": 1}, {"value": None}, {"value": "1h"}),
    *({"allow": [P5]}, {"allow": []}, {"one_of": ["a"]}, {"tags": {"a": {}}}, {"tags": {}}, {"tags": ["a"]}),
    *([P5], [ROLE], [IMAGE], ["s3://b"], ["S3://b"], [IMAGE + ":*"], ["ml.*"], "(", "[a-", "(a|b)+"),
)


def parsed(document: object) -> Policy | None:
    try:
        return parse_policy(document)
    except PolicyViolationError:
        return None


def places(value: object, path: Path = ()) -> Iterator[Path]:
    """Where anything stands in a document, containers too."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for step, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, step))


def with_value(path: Path, value: object) -> dict[str, Any]:
    """As much of the full document as goes together, with another value."""
    together = {"pools", "teams"} if path[0] in {"pools", "teams"} else {path[0]}
    document = {key: copy.deepcopy(part) for key, part in FULL.items() if key in together}
    inner: Any = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return document


def value_at(path: Path) -> Any:
    inner: Any = FULL
    for step in path:
        inner = inner[step]
    return inner


def _told_most(way: dict[str, Any]) -> tuple[bool, bool, bool]:
    return (way.get("type") == "object", "$ref" in way, "pattern" in way)


def subschema(path: Path, node: dict[str, Any] = SCHEMA) -> dict[str, Any]:
    """What the schema says of a place; of several ways to write it, the mapping, else the pattern."""
    if "$ref" in node:
        node = node | SCHEMA["$defs"][node["$ref"].rpartition("/")[2]]
    if "anyOf" in node and "properties" not in node:
        ways = node["anyOf"]
        chosen = subschema((), max(ways, key=_told_most))
        node = {key: said for key, said in node.items() if key != "anyOf"} | chosen
    if not path:
        return node
    step, *rest = path
    if isinstance(step, int):
        return subschema(tuple(rest), node["items"])
    properties = node.get("properties", {})
    return subschema(tuple(rest), properties.get(step) or node["additionalProperties"])


def nodes(value: object) -> Iterator[dict[str, Any]]:
    """Every object of the schema, however deep."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(inner)


def name_of(path: Path) -> str:
    return ".".join(str(step) for step in path)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_example_and_the_guide_are_valid() -> None:
    written = [
        text_of("policy.example.yaml"),
        *(block.text for block in blocks(text_of("docs/policy.md"), "yaml")),
    ]
    assert len(written) >= 3
    for text in written:
        VALIDATOR.validate(yaml.safe_load(text))


def test_a_document_with_every_key_is_valid_for_both() -> None:
    assert parsed(FULL) is not None
    VALIDATOR.validate(FULL)


def is_section(path: Path) -> bool:
    return isinstance(value_at(path), dict) and subschema(path).get("additionalProperties") is False


SECTIONS = [(), *(path for path in places(FULL) if is_section(path) and path != ("teams", 1))]


def written_keys(path: Path) -> set[str]:
    """Return the keys of a mapping of the full document; entries of a calendar exclude each other's."""
    mappings = value_at(path[:-1]) if "calendar" in path else [value_at(path)]
    return {key for mapping in mappings for key in mapping}


@pytest.mark.parametrize("path", SECTIONS, ids=name_of)
def test_the_keys_of_a_section_are_those_of_the_parser(path: Path) -> None:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(with_value((*path, "zzzzzzzz"), 1))
    (error,) = caught.value.errors
    known = error.hint.removeprefix("known keys: ").split(", ")
    assert set(subschema(path)["properties"]) == set(known) == written_keys(path)


def test_every_mapping_of_the_schema_is_compared() -> None:
    mappings = (node for node in nodes(SCHEMA) if node.get("additionalProperties") is False)
    closed = {json.dumps(node["properties"]) for node in mappings}
    compared = {json.dumps(subschema(path)["properties"]) for path in SECTIONS}
    assert compared == closed
    assert len(compared) == 43


TRIED = [path for path in places(FULL) if path[:3] != (*TEAM, "rules")]
"""A team's rules are read and described by what reads and describes those of the whole policy."""


@pytest.mark.parametrize("path", TRIED, ids=name_of)
def test_whatever_the_parser_accepts_is_valid(path: Path) -> None:
    """And the other way round, but for what a schema does not know: bounds of durations, sums, other keys."""
    for probe in PROBES:
        document = with_value(path, probe)
        is_accepted, is_valid = parsed(document) is not None, VALIDATOR.is_valid(document)
        if is_accepted:
            assert is_valid, probe
        elif is_valid:
            assert knows_more(path, probe), probe


def knows_more(path: Path, probe: object) -> bool:
    """Where the parser is right to refuse what the schema lets pass."""
    is_duration = subschema(path).get("pattern", "").endswith("[smhd]$")
    compared = {
        "name",
        "quotas",
        "shares",
        "calendar",
        "reservations",
        "team",
        "plans",
        "capacity",
        "spot_capacity",
        "pattern",
    }
    compared |= {"subnets", "security_group_ids"}  # one needs the other
    is_compared = compared & set(path) or path[-1] in {
        "pools",
        "teams",
        0,
    }
    is_whole_as_real = isinstance(probe, float) and probe == int(probe)
    return is_duration or bool(is_compared) or is_whole_as_real


def defaults(node: dict[str, Any], path: Path) -> Iterator[tuple[Path, object]]:
    for key, inner in node.get("properties", {}).items():
        found = subschema((), inner)
        if "default" in inner:
            yield (*path, key), inner["default"]
        yield from defaults(found, (*path, key))


DEFAULTS = [
    *defaults(SCHEMA, ()),
    *defaults(subschema(POOL), POOL),
    *defaults(subschema(TEAM), TEAM),
]


@pytest.mark.parametrize(("path", "default"), [pytest.param(*one, id=name_of(one[0])) for one in DEFAULTS])
def test_a_default_of_the_schema_is_that_of_the_parser(path: Path, default: object) -> None:
    documents = with_value(path, None), with_value(path, default)
    for document in documents:
        for pool in document.get("pools") or ():
            pool["quotas"] = pool["calendar"] = pool["reservations"] = None  # they need the capacity
            if {"subnets", "security_group_ids"} & set(path):
                pool["overrides"] = {path[-1]: pool["overrides"][path[-1]]}  # one needs the other
    without, written = (parse_policy(document) for document in documents)
    assert replace(written, source={}) == replace(without, source={})


def test_the_defaults_in_the_guide_are_those_of_the_schema() -> None:
    guide = text_of("docs/policy.md")
    rows = [
        *((POOL, row) for row in table(guide, "key of a pool", "default", "meaning")[1:]),
        *(((), row) for row in table(guide, "key of the document", "default", "meaning")),
    ]
    shown = {
        (*top, *codes(row[0])[0].split(".")): yaml.safe_load(codes(row[1])[0])
        for top, row in rows
        if codes(row[1])
    }
    assert len(shown) == 77
    assert {path: subschema(path)["default"] for path in shown} == shown


@given(st.data())
def test_a_document_that_the_parser_accepts_is_valid(data: st.DataObject) -> None:
    document = copy.deepcopy(FULL)
    for path in data.draw(st.lists(st.sampled_from(list(places(FULL))), max_size=4)):
        inner: Any = document
        try:
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = copy.deepcopy(data.draw(st.sampled_from(PROBES)))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    if parsed(document) is not None:
        VALIDATOR.validate(document)
