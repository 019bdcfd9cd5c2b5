"""docs/events.md and docs/events.schema.json say what the code tells."""

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # its stubs are not installed
from trainmaster.core.outbox.messages import NoticeKind
from trainmaster.core.outbox.render import MAILED, VERSION, event_detail

from tests.markdown import ROOT, table, text_of
from tests.unit.core.outbox.examples import EXAMPLES

PAGE = text_of("docs/events.md")
SCHEMA: dict[str, Any] = json.loads((ROOT / "docs/events.schema.json").read_text())
CHECKER = Draft202012Validator(SCHEMA)
every_kind = pytest.mark.parametrize("kind", list(NoticeKind))


def event(kind: NoticeKind) -> dict[str, Any]:
    """As EventBridge hands it on; the adapter adds the stack."""
    detail = {"stack": "prod", **event_detail(EXAMPLES[kind])}
    return {"source": "trainmaster", "detail-type": kind.value, "detail": detail}


def of_kind(kind: NoticeKind) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["$defs"][kind.replace(" ", "")]
    return found


@every_kind
def test_what_the_code_tells_fits_the_schema(kind: NoticeKind) -> None:
    assert [error.message for error in CHECKER.iter_errors(event(kind))] == []


@every_kind
def test_a_key_that_is_missing_unknown_or_wrong_does_not_fit(kind: NoticeKind) -> None:
    good = event(kind)
    for key in ("version", "id", "team", *of_kind(kind)["required"]):
        rest = {name: value for name, value in good["detail"].items() if name != key}
        assert not CHECKER.is_valid({**good, "detail": rest}), key
    assert not CHECKER.is_valid({**good, "detail": {**good["detail"], "surprise": 1}})
    assert not CHECKER.is_valid({**good, "detail": {**good["detail"], "version": "2"}})
    assert not CHECKER.is_valid({**good, "detail-type": "Surprise"})


@every_kind
def test_the_schema_has_no_key_that_the_code_never_tells(kind: NoticeKind) -> None:
    told = event(kind)["detail"].keys() | {"lost_to"}  # only where something was lost
    assert of_kind(kind)["properties"].keys() - told == set()


@every_kind
def test_the_example_is_what_the_code_tells(kind: NoticeKind) -> None:
    shown = re.search(rf"^### {kind}\n\n```json\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert json.loads(shown[1]) == event(kind)["detail"]


def test_the_table_of_kinds_says_which_are_mailed() -> None:
    rows = {kind: mail for kind, _, mail in table(PAGE, "detail-type", "when", "e-mail")}
    expected = {f"`{kind}`": "yes" if kind in MAILED else "no" for kind in NoticeKind}
    assert rows == expected | {"`Job Retried`": "charged retries"}


def test_the_schema_is_of_the_version_that_is_sent() -> None:
    assert SCHEMA["title"] == f"Events of trainmaster, version {VERSION}"
    assert SCHEMA["$defs"]["common"]["properties"]["version"] == {"const": VERSION}
