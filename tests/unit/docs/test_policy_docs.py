"""The guide to the policy and the policy of the code are the same."""

import dataclasses
from decimal import Decimal
from typing import Any

import yaml
from trainmaster.core.policy import Policy, PoolPolicy, TeamPolicy, parse_policy
from trainmaster.core.policy.governance import Governing, Idle, OnOom, Recovery, Utilization
from trainmaster.core.policy.job_rules import Rules
from trainmaster.core.policy.loss_rule import Divergence, LossRule, Plateau

from tests.markdown import codes, table, text_of

POLICY = text_of("docs/policy.md")
OF_AN_INSTANT = {"base", "stops", "reserved", "ahead", "seen_plans", "plan_counts", "plans_ahead"}
"""Fields of a pool that its calendar and its plans fill in, which nobody writes."""


def policy_with(key: str, value: object) -> PoolPolicy:
    """The one pool of a document in which it has this key, dots and all."""
    pool: dict[str, Any] = {"name": "p", "capacity": {"ml.m5.xlarge": 1}}
    inner = pool
    *outer, last = key.split(".")
    for part in outer:
        inner = inner.setdefault(part, {})
    inner[last] = value
    return parse_policy({"pools": [pool]}).pools[0]


def leaves(value: Any, path: str = "") -> set[str]:
    """The paths of everything in a dataclass that is not one itself."""
    if not dataclasses.is_dataclass(value):
        return {path}
    inner = ((one.name, getattr(value, one.name)) for one in dataclasses.fields(value))
    return {leaf for name, found in inner for leaf in leaves(found, f"{path}.{name}".lstrip("."))}


def test_every_key_of_a_pool_is_shown_with_its_default() -> None:
    rows = table(POLICY, "key of a pool", "default", "meaning")[1:]
    keys = {codes(row[0])[0]: yaml.safe_load((codes(row[1]) or ["null"])[0]) for row in rows}
    plain = parse_policy({"pools": [{"name": "p", "capacity": {"ml.m5.xlarge": 1}}]}).pools[0]
    assert set(keys) == leaves(plain) - {"name"} - OF_AN_INSTANT
    del keys["capacity"]  # needed for a type to be there at all
    for key, default in keys.items():
        assert policy_with(key, default) == plain, key


def test_every_key_of_a_team_is_shown_with_its_default() -> None:
    rows = {codes(row[0])[0]: row[1].strip("`") for row in table(POLICY, "key", "default", "meaning")}
    named = {key.removeprefix("teams[].") for key in rows if key.startswith("teams")}
    budget = {"budget.usd_per_month", "budget.at_limit"}
    assert named == {field.name for field in dataclasses.fields(TeamPolicy)} | budget
    assert {key for key, default in rows.items() if default == "needed"} == {
        "teams[].name",
        "teams[].budget.usd_per_month",
    }
    assert rows["teams[].max_priority"] == str(TeamPolicy(name="t").max_priority)
    without = {"budget", "roles", "images", "s3_prefixes"}
    assert {rows[f"teams[].{key}"] for key in without} == {"none"}
    assert all(getattr(TeamPolicy(name="t"), key) is None for key in without)
    assert rows["teams[].rules"] == "{}"


def document_with(key: str, value: object) -> dict[str, Any]:
    for part in reversed(key.split(".")):
        value = {part: value}
    return value  # type: ignore[return-value]  # a key has at least one part


def merged(document: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The document with the sections of the change in place of its own, and what else it has in them."""
    both = {key: (document[key], change[key]) for key in document.keys() & change.keys()}
    inner = {key: merged(*pair) for key, pair in both.items() if all(isinstance(one, dict) for one in pair)}
    return document | change | inner


def test_every_other_key_that_is_acted_on_is_shown() -> None:
    shown = {codes(row[0])[0] for row in table(POLICY, "key of the document", "default", "meaning")}
    loss = LossRule(divergence=Divergence(), plateau=Plateau())
    recovery = Recovery(on_oom=OnOom(batch=()))
    whole = Governing(idle=Idle(), utilization=Utilization(), recovery=recovery, loss=loss)
    own_rows_or_said_elsewhere = {
        "pools",
        "teams",
        "admins",
        "warnings",
        "source",
        "defaults",
        "governing",
        "rules",
        "version",
    }
    others = {field.name for field in dataclasses.fields(Policy)} - own_rows_or_said_elsewhere
    optional = {"idle", "utilization", "recovery.on_oom", "loss", "loss.divergence", "loss.plateau"}
    assert shown == {key.replace("for_", "for") for key in leaves(whole)} | others | optional


def test_every_other_key_is_shown_with_its_default() -> None:
    rows = table(POLICY, "key of the document", "default", "meaning")
    defaults = {codes(row[0])[0]: yaml.safe_load(codes(row[1])[0]) for row in rows if codes(row[1])}
    plain = parse_policy({}).governing
    loss = LossRule(divergence=Divergence(), plateau=Plateau())
    sections: dict[str, Any] = {"idle": {}, "utilization": {}, "loss": {"divergence": {}, "plateau": {}}}
    whole = dataclasses.replace(plain, idle=Idle(), utilization=Utilization(), loss=loss)
    for key, default in defaults.items():
        if not key.startswith(("recovery.on_oom", "prices")) and key != "idle":
            found = parse_policy(merged(sections, document_with(key, default))).governing
            assert found == whole, key
    assert {codes(row[0])[0]: row[1] for row in rows if not codes(row[1])} == {
        **dict.fromkeys(("utilization", "loss", "loss.divergence", "loss.plateau"), "none"),
        "recovery.on_oom": "none",
        "recovery.on_oom.batch": "needed",
    }
    assert parse_policy({"idle": defaults["idle"]}).governing == plain, (
        "what stands for a section not written"
    )
    assert (plain.recovery.on_oom, parse_policy({}).prices, defaults["prices"]) == (None, {}, {})
    example = yaml.safe_load(codes(next(row[2] for row in rows if "prices" in row[0]))[0])
    assert parse_policy({"prices": example}).prices == {"ml.p5.48xlarge": Decimal("60.5")}


def test_every_rule_is_shown_with_a_value_that_is_read() -> None:
    rows = {codes(row[0])[0]: codes(row[1])[0] for row in table(POLICY, "rule", "value", "what it asks")}
    assert set(rows) == {field.name for field in dataclasses.fields(Rules)}
    for rule, value in rows.items():
        rules = parse_policy({"rules": {rule: yaml.safe_load(value)}}).rules
        assert getattr(rules, rule) is not None, rule
