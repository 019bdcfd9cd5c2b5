"""Each error of the tree as an HTTP answer."""

import json
from collections.abc import Iterator

import pytest
from trainmaster.api.router import problem
from trainmaster.core.errors import (
    FieldError,
    NotFoundError,
    PolicyViolationError,
    TooManyRequestsError,
    TrainmasterError,
)


def subclasses(root: type[TrainmasterError]) -> Iterator[type[TrainmasterError]]:
    for child in root.__subclasses__():
        yield child
        yield from subclasses(child)


@pytest.mark.parametrize(
    "kind", [TrainmasterError, *subclasses(TrainmasterError)], ids=lambda kind: kind.__name__
)
def test_every_error_of_the_tree_is_a_problem_document(kind: type[TrainmasterError]) -> None:
    error = kind.__new__(kind)
    TrainmasterError.__init__(error, "it is so")
    if isinstance(error, TooManyRequestsError):
        error.retry_after = 7
    answer = problem(error)
    assert answer.content_type == "application/problem+json"
    assert answer.body is not None
    document = json.loads(answer.body)
    assert document["status"] == answer.status_code == kind.status
    assert document["type"].startswith("urn:trainmaster:problem:")
    assert " " not in document["type"]
    assert ("Retry-After" in answer.headers) is kind.retryable


def test_a_limit_says_when_to_come_back() -> None:
    assert problem(TooManyRequestsError("too fast", retry_after=42)).headers["Retry-After"] == "42"


def test_errors_name_their_rule_only_when_one_says_so() -> None:
    plain = FieldError(field="a", message="m", hint="h")
    ruled = FieldError(field="b", message="m", hint="h", rule="never-fits")
    body = problem(PolicyViolationError("no", errors=[plain, ruled])).body
    assert json.loads(body or "")["errors"] == [
        {"field": "a", "message": "m", "hint": "h"},
        {"field": "b", "message": "m", "hint": "h", "rule": "never-fits"},
    ]


def test_text_of_any_script_is_plain_ascii_on_the_wire() -> None:
    body = problem(NotFoundError("kein Job \N{RIGHT-TO-LEFT OVERRIDE}")).body
    assert (body or "").isascii()
