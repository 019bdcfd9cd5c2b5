"""Quotas of the policy document: what they mean, and every way in which they make no sense."""

from typing import Any

import pytest
from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import Quota, parse_policy

P5 = "ml.p5.48xlarge"
G5 = "ml.g5.12xlarge"
PATH = "pools[0].quotas"


def document(
    quotas: object, *, teams: tuple[str, ...] = ("vision", "language"), **pool: Any
) -> dict[str, Any]:
    keys = {"name": "p5", "capacity": {P5: 4}, "quotas": quotas} | pool
    return {"pools": [keys], "teams": [{"name": team, "roles": "any"} for team in teams]}


def errors_of(written: object) -> tuple[FieldError, ...]:
    with pytest.raises(PolicyViolationError) as caught:
        parse_policy(written)
    return caught.value.errors


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        pytest.param({"nominal": {P5: 3}}, Quota(nominal={P5: 3}), id="nominal alone: borrows all there is"),
        pytest.param(
            {"nominal": {P5: 3}, "borrowing_limit": {P5: 1}},
            Quota(nominal={P5: 3}, borrowing_limit={P5: 1}),
            id="both",
        ),
        pytest.param(
            {"borrowing_limit": {P5: 2}}, Quota(nominal={}, borrowing_limit={P5: 2}), id="only as a guest"
        ),
        pytest.param({"nominal": {P5: 0}}, Quota(nominal={P5: 0}), id="nothing of its own"),
        pytest.param(
            {"nominal": 2, "borrowing_limit": 0},
            Quota(nominal={P5: 2}, borrowing_limit={P5: 0}),
            id="bare numbers",
        ),
        pytest.param(3, Quota(nominal={P5: 3}), id="a bare quota is nominal"),
        pytest.param(
            {"nominal": 1, "borrowing_limit": None}, Quota(nominal={P5: 1}), id="a bare key is absent"
        ),
    ],
)
def test_a_quota_is_read(quota: object, expected: Quota) -> None:
    policy = parse_policy(document({"vision": quota}))
    assert policy.pools[0].quotas == {"vision": expected}
    assert policy.warnings == ()


def test_a_type_with_spot_capacity_alone_does_not_count_for_a_bare_number() -> None:
    policy = parse_policy(document({"vision": 3}, spot_capacity={G5: 8}))
    assert policy.pools[0].quotas["vision"].nominal == {P5: 3}


@pytest.mark.parametrize(
    ("quotas", "field", "message"),
    [
        pytest.param([], "", "must be a mapping, not a list", id="a list"),
        pytest.param({"vison": 1}, ".vison", 'there is no team "vison"', id="no such team"),
        pytest.param({"a#b": 1}, '["a#b"]', 'is not a name: "a#b"', id="no name of a team"),
        pytest.param({"vision": None}, ".vision", "has no quota", id="a bare team"),
        pytest.param(
            {"vision": {}}, ".vision", "has neither nominal nor borrowing_limit", id="an empty quota"
        ),
        pytest.param({"vision": "3"}, ".vision", 'is not a number of instances: "3"', id="text"),
        pytest.param({"vision": {"nominal": 1, "limit": 1}}, ".vision.limit", "unknown key", id="unknown"),
        pytest.param(
            {"vision": -1}, ".vision", "must be a whole number, 0 to 1000000, not -1", id="a negative number"
        ),
        pytest.param(
            {"vision": {"borrowing_limit": {P5: -1}}},
            f".vision.borrowing_limit.{P5}",
            "must be a whole number, 0 to 1000000, not -1",
            id="a negative limit",
        ),
        pytest.param(
            {"vision": {"nominal": {P5: 1.5}}},
            f".vision.nominal.{P5}",
            "must be a whole number, 0 to 1000000, not 1.5",
            id="half an instance",
        ),
        pytest.param({"vision": {"nominal": {}}}, ".vision.nominal", "names no instance type", id="empty"),
        pytest.param(
            {"vision": {"nominal": 1, "borrowing_limit": {}}},
            ".vision.borrowing_limit",
            "names no instance type",
            id="an empty limit",
        ),
        pytest.param(
            {"vision": {"nominal": {G5: 1}}},
            f".vision.nominal.{G5}",
            f'the pool has no on-demand capacity of "{G5}"',
            id="a type of no pool",
        ),
        pytest.param(
            {"vision": {"nominal": 3}, "language": {"nominal": 2}},
            "",
            f"the nominal quotas of {P5} add up to 5, the pool has 4",
            id="more than there is",
        ),
    ],
)  # fmt: skip
def test_a_quota_without_sense_is_refused(quotas: object, field: str, message: str) -> None:
    (error,) = errors_of(document(quotas))
    assert (error.field, error.message) == (PATH + field, message)
    assert error.hint


def test_a_misspelt_team_or_type_is_answered_with_the_nearest_one() -> None:
    quotas = {"vison": 1, "language": {"nominal": {"ml.p5.48xlrge": 1}}}
    assert [error.hint for error in errors_of(document(quotas))] == [
        "did you mean ml.p5.48xlarge?",
        "did you mean vision?",
    ]


def test_a_team_far_from_all_others_is_answered_with_their_names() -> None:
    (error,) = errors_of(document({"x": 1}))
    assert error.hint == "teams of the policy: vision, language"


@pytest.mark.parametrize(
    ("pool", "message", "hint"),
    [
        pytest.param(
            {"capacity": {P5: 4, G5: 4}},
            "a bare number needs a pool with one on-demand type; this one has 2",
            f"write {{TYPE: COUNT}}; quotas count on-demand instances; the pool has {P5}, {G5}",
            id="two types",
        ),
        pytest.param(
            {"capacity": {}, "spot_capacity": {P5: 4}},
            "a bare number needs a pool with one on-demand type; this one has 0",
            "write {TYPE: COUNT}; quotas count on-demand instances; the pool has none",
            id="spot alone",
        ),
    ],
)
def test_a_bare_number_needs_one_on_demand_type(pool: dict[str, Any], message: str, hint: str) -> None:
    (error,) = errors_of(document({"vision": 1}, **pool))
    assert (error.field, error.message, error.hint) == (f"{PATH}.vision", message, hint)


def test_quotas_do_not_speak_of_a_type_that_the_pool_has_on_spot_alone() -> None:
    (error,) = errors_of(document({"vision": {"nominal": {G5: 1}}}, spot_capacity={G5: 8}))
    assert error.field == f"{PATH}.vision.nominal.{G5}"


def test_quotas_may_add_up_to_the_capacity_and_to_less() -> None:
    assert parse_policy(document({"vision": 3, "language": 1})).warnings == ()
    assert parse_policy(document({"vision": 1, "language": 1})).warnings == ()


def test_each_type_is_added_up_for_itself() -> None:
    nominal = {"vision": {"nominal": {P5: 4}}, "language": {"nominal": {G5: 5}}}
    (error,) = errors_of(document(nominal, capacity={P5: 4, G5: 4}))
    assert error.message == f"the nominal quotas of {G5} add up to 5, the pool has 4"


def test_a_limit_above_what_others_could_lend_gets_a_warning() -> None:
    quotas = {"vision": {"nominal": 3, "borrowing_limit": 2}, "language": {"borrowing_limit": {P5: 4}}}
    (warning,) = parse_policy(document(quotas)).warnings
    assert warning.field == f"{PATH}.vision.borrowing_limit.{P5}"
    assert warning.message == "limits nothing: beyond the team's 3 the pool has 1, the limit is 2"
    assert warning.hint == "write less than 1, or leave it out"


def test_without_teams_only_the_default_team_can_have_a_quota() -> None:
    policy = parse_policy(document({"default": 3, "vision": 1}, teams=()))
    assert sorted(policy.pools[0].quotas) == ["default", "vision"]
    (warning,) = policy.warnings
    assert warning.field == f"{PATH}.vision"
    assert warning.message == 'team "vision" has no members: without teams every caller is in default'


def test_a_team_name_that_is_no_plain_word_is_quoted_in_paths() -> None:
    (error,) = errors_of(document({"a/b": -1}, teams=("a/b",)))
    assert error.field == f'{PATH}["a/b"]'


def test_all_mistakes_in_quotas_are_found_at_once() -> None:
    quotas = {"vision": {"nominal": {G5: 1}, "borrowing_limit": -1}, "speech": {"nominal": 5}, "language": {}}
    assert [error.field for error in errors_of(document(quotas))] == [
        f"{PATH}.vision.nominal.{G5}",
        f"{PATH}.vision.borrowing_limit",
        f"{PATH}.language",
        PATH,
        f"{PATH}.speech",
    ]


@pytest.mark.parametrize(
    ("preemption", "field"),
    [
        ({"enabled": False}, "pools[0].preemption.enabled"),
        ({"min_runtime": "5h"}, "pools[0].preemption.min_runtime"),
        ({"min_runtime": "4h"}, None),
        ({}, None),
    ],
)
def test_O8_what_keeps_loans_from_being_called_back_is_a_warning(
    preemption: dict[str, Any], field: str | None
) -> None:
    pool = {"name": "a", "capacity": {"ml.g5.xlarge": 2}, "preemption": preemption}
    with_quotas = parse_policy({"pools": [pool | {"quotas": {"default": 1}}]})
    assert [one.field for one in with_quotas.warnings] == ([field] if field else [])
    assert parse_policy({"pools": [pool]}).warnings == ()
