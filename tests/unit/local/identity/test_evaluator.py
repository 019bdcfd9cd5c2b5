"""The policy evaluator, case by case as the IAM User Guide describes it."""

from typing import Any

import pytest

from local.identity.evaluator import is_allowed

TABLE = "arn:aws:dynamodb:us-east-1:1:table/jobs"


def allow(**elements: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "*", "Resource": "*"} | elements


def deny(**elements: Any) -> dict[str, Any]:
    return allow(**elements) | {"Effect": "Deny"}


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


def without(statement: dict[str, Any], element: str) -> dict[str, Any]:
    return {key: value for key, value in statement.items() if key != element}


@pytest.mark.parametrize(
    ("statements", "allowed"),
    [
        pytest.param([], False, id="nothing said: no"),
        pytest.param([allow()], True, id="a star allows all"),
        pytest.param([allow(Action="dynamodb:GetItem")], True, id="the action by name"),
        pytest.param([allow(Action="DYNAMODB:getitem")], True, id="the case of an action does not matter"),
        pytest.param([allow(Action=["sqs:*", "dynamodb:Get*"])], True, id="one of several actions"),
        pytest.param([allow(Action="dynamodb:GetIte?")], True, id="a question mark is one character"),
        pytest.param([allow(Action="dynamodb:GetItem?")], False, id="and never none"),
        pytest.param([allow(Action="dynamodb:Get")], False, id="a prefix is not a match"),
        pytest.param([allow(Resource=TABLE)], True, id="the resource by name"),
        pytest.param([allow(Resource=TABLE.upper())], False, id="the case of a resource matters"),
        pytest.param([allow(Resource=[TABLE + "/index/*"])], False, id="an index is not its table"),
        pytest.param([allow(Resource="arn:aws:dynamodb:*:*:table/*")], True, id="stars in the parts"),
        pytest.param([allow(Resource="arn:aws:dynamodb:us-east-1:1:table/[jobs]")], False, id="no classes"),
        pytest.param(
            [allow(), deny(Action="dynamodb:GetItem")], False, id="an explicit deny wins whatever comes first"
        ),
        pytest.param([deny(Action="dynamodb:GetItem"), allow()], False, id="and whatever comes later"),
        pytest.param(
            [allow(), deny(Action="dynamodb:PutItem")], True, id="a deny of something else does not"
        ),
        pytest.param([without(allow(NotAction="iam:*"), "Action")], True, id="NotAction: all but these"),
        pytest.param([without(allow(NotAction="dynamodb:*"), "Action")], False, id="NotAction: these not"),
        pytest.param(
            [without(allow(NotResource="arn:aws:s3:::*"), "Resource")], True, id="NotResource: others"
        ),
        pytest.param([without(allow(NotResource=TABLE), "Resource")], False, id="NotResource: this one not"),
    ],
)
def test_statements(statements: list[dict[str, Any]], *, allowed: bool) -> None:
    assert is_allowed([policy(*statements)], "dynamodb:GetItem", TABLE, {}) is allowed


@pytest.mark.parametrize(
    ("condition", "context", "allowed"),
    [
        pytest.param({"StringEquals": {"k": "a"}}, {"k": "a"}, True, id="equal"),
        pytest.param({"StringEquals": {"k": ["a", "b"]}}, {"k": "b"}, True, id="equal to one of them"),
        pytest.param({"StringEquals": {"k": "a*"}}, {"k": "ab"}, False, id="equal knows no star"),
        pytest.param({"StringEquals": {"k": "a"}}, {}, False, id="equal: a missing key is a no"),
        pytest.param(
            {"StringEquals": {"AWS:K": "a"}}, {"aws:k": "a"}, True, id="the case of a key does not matter"
        ),
        pytest.param(
            {"StringEquals": {"k": "a", "l": "b"}}, {"k": "a", "l": "c"}, False, id="all keys must hold"
        ),
        pytest.param(
            {"StringEquals": {"k": "a"}, "Bool": {"l": "true"}},
            {"k": "a"},
            False,
            id="all operators must hold",
        ),
        pytest.param({"StringEqualsIfExists": {"k": "a"}}, {}, True, id="IfExists: a missing key is a yes"),
        pytest.param(
            {"StringEqualsIfExists": {"k": "a"}}, {"k": "b"}, False, id="IfExists: a wrong one is a no"
        ),
        pytest.param({"StringNotEquals": {"k": "a"}}, {"k": "b"}, True, id="not equal"),
        pytest.param(
            {"StringNotEquals": {"k": ["a", "b"]}}, {"k": "b"}, False, id="not equal to any of them"
        ),
        pytest.param({"StringNotEquals": {"k": "a"}}, {}, True, id="not equal: a missing key is a yes"),
        pytest.param({"StringNotEquals": {"k": "a"}}, {"k": ["a", "b"]}, False, id="not equal: none may be"),
        pytest.param({"StringEqualsIgnoreCase": {"k": "A"}}, {"k": "a"}, True, id="equal but for case"),
        pytest.param({"StringLike": {"k": "a*"}}, {"k": "abc"}, True, id="like"),
        pytest.param({"StringNotLike": {"k": "a*"}}, {"k": "abc"}, False, id="not like"),
        pytest.param(
            {"ArnLike": {"k": "arn:aws:iam::*:role/team-*"}},
            {"k": "arn:aws:iam::1:role/team-a"},
            True,
            id="ARN",
        ),
        pytest.param(
            {"ArnEquals": {"k": "arn:aws:iam::*:role/a"}},
            {"k": "arn:aws:iam::1:role/a"},
            True,
            id="ARN equal",
        ),
        pytest.param(
            {"ArnLike": {"k": "arn:*:role/a"}},
            {"k": "arn:aws:iam::1:role/a"},
            False,
            id="a star stays in its part",
        ),
        pytest.param(
            {"ArnNotLike": {"k": "arn:aws:s3:::a*"}}, {"k": "arn:aws:s3:::b"}, True, id="ARN not like"
        ),
        pytest.param({"Bool": {"k": True}}, {"k": "true"}, True, id="a JSON true"),
        pytest.param({"Bool": {"k": "false"}}, {"k": True}, False, id="not a false"),
        pytest.param({"Null": {"k": "true"}}, {}, True, id="null: missing as wanted"),
        pytest.param({"Null": {"k": "false"}}, {"k": "x"}, True, id="null: there as wanted"),
        pytest.param({"Null": {"k": "false"}}, {}, False, id="null: missing"),
        pytest.param({"NumericLessThanEquals": {"k": "9"}}, {"k": "9"}, True, id="at most"),
        pytest.param({"NumericLessThanEquals": {"k": "9"}}, {"k": "10"}, False, id="numbers are not texts"),
        pytest.param({"NumericGreaterThan": {"k": 9}}, {"k": 10}, True, id="more than"),
        pytest.param({"NumericEquals": {"k": "9"}}, {"k": "nine"}, False, id="not a number"),
        pytest.param(
            {"ForAllValues:StringEquals": {"k": ["a", "b"]}}, {"k": ["a", "b"]}, True, id="all of the values"
        ),
        pytest.param({"ForAllValues:StringEquals": {"k": ["a"]}}, {"k": ["a", "c"]}, False, id="not all"),
        pytest.param({"ForAllValues:StringEquals": {"k": ["a"]}}, {}, True, id="all of none"),
        pytest.param(
            {"ForAnyValue:StringEquals": {"k": ["a"]}}, {"k": ["c", "a"]}, True, id="any of the values"
        ),
        pytest.param(
            {"ForAnyValue:StringEquals": {"k": ["a"]}}, {"k": ["c"]}, False, id="none of the values"
        ),
        pytest.param({"ForAnyValue:StringEquals": {"k": ["a"]}}, {}, False, id="any of none"),
        pytest.param({"ForAnyValue:StringNotEquals": {"k": ["a"]}}, {"k": ["a", "b"]}, True, id="any other"),
        pytest.param({"ForAnyValue:StringNotEquals": {"k": ["a"]}}, {"k": ["a"]}, False, id="no other"),
    ],
)
def test_conditions(condition: dict[str, Any], context: dict[str, Any], *, allowed: bool) -> None:
    document = policy(allow(Condition=condition))
    assert is_allowed([document], "dynamodb:GetItem", TABLE, context) is allowed


def test_a_policy_may_hold_one_statement_without_a_list() -> None:
    assert is_allowed([{"Statement": allow()}], "sqs:SendMessage", "arn:aws:sqs:us-east-1:1:q", {})


def test_a_statement_of_another_policy_counts() -> None:
    denied = policy(deny(Action="sqs:*"))
    assert not is_allowed([policy(allow()), denied], "sqs:SendMessage", "arn:aws:sqs:us-east-1:1:q", {})


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(allow(Condition={"StringSortOfEquals": {"k": "a"}}), id="an unknown operator"),
        pytest.param(allow(Condition={"ForSomeValues:StringEquals": {"k": "a"}}), id="an unknown quantifier"),
        pytest.param(allow(Condition={"NullIfExists": {"k": "true"}}), id="a Null that may be missing"),
        pytest.param(allow(Principal="*"), id="a principal in an identity policy"),
        pytest.param(allow(Resource="arn:aws:s3:::${aws:username}"), id="a policy variable"),
        pytest.param(allow(Effect="Maybe"), id="an unknown effect"),
        pytest.param(allow(NotAction="s3:*"), id="Action and NotAction"),
        pytest.param(without(allow(), "Resource"), id="no resource"),
    ],
)
def test_what_the_evaluator_does_not_know_is_an_error_and_never_a_silent_answer(
    statement: dict[str, Any],
) -> None:
    with pytest.raises(ValueError, match=r".+"):
        is_allowed([policy(statement)], "s3:GetObject", "arn:aws:s3:::b/k", {})
