"""Reason codes are members of one enumeration, and stored ones that nobody knows are kept."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from trainmaster.adapters.dynamodb.codec import decode, encode
from trainmaster.api.views import reason_view
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.failures import FailureClass
from trainmaster.core.jobs.reason_codes import ForeignCode, ReasonCode

from tests.markdown import ROOT

DEFINES_THEM = "layers/trainmaster/trainmaster/core/jobs/reason_codes.py"
OF_VIOLATIONS = "layers/trainmaster/trainmaster/core/rules/violation.py"
"""Its outcome ``not-stopped`` is the API's word for a violation as well."""
SOURCES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("layers/trainmaster/trainmaster", "functions")
    for path in (ROOT / folder).rglob("*.py")
)
HYPHENATED = frozenset(code.value for code in ReasonCode if "-" in code)
"""The others are words that stand for much else, in views and in tables."""


def literals(source: str) -> Iterator[str]:
    """Codes that are written out where a member belongs."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.keyword(arg="code", value=ast.Constant(value=str(text))):
                yield text
            case ast.Compare(left=ast.Attribute(attr="code")):
                constants = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
                yield from (value for value in constants if isinstance(value, str))
            case ast.Constant(value=str(text)) if text in HYPHENATED:
                yield text


@pytest.mark.parametrize("path", [path for path in SOURCES if path not in {DEFINES_THEM, OF_VIOLATIONS}])
def test_no_code_is_written_out_outside_the_enumeration(path: str) -> None:
    assert list(literals(Path(ROOT / path).read_text(encoding="utf-8"))) == []


def test_a_code_that_is_written_out_is_found() -> None:
    assert list(literals('Reason(code="held", message="")')) == ["held"]
    assert list(literals('if reason.code == "idle": pass')) == ["idle"]
    assert list(literals('CODE = "max-wait"')) == ["max-wait"]


def test_every_code_comes_back_from_the_table_as_it_was() -> None:
    for code in ReasonCode:
        reason = Reason(code=code, message="why")
        assert decode(Reason, encode(reason)).code is code


def test_a_code_of_a_newer_release_is_kept_and_shown_as_it_is() -> None:
    stored = {"code": "of-tomorrow", "message": "why"}
    reason = decode(Reason, stored)
    assert isinstance(reason.code, ForeignCode)
    assert encode(reason) == stored
    assert reason_view(reason) == stored


def test_each_failure_class_is_the_code_of_the_attempts_that_failed_of_it() -> None:
    assert [found.code.value for found in FailureClass] == [found.value for found in FailureClass]
