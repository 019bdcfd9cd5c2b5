"""What is stored stays as it was, byte for byte, whatever its fields are called and however they are grouped.

``tests/fixtures/stored_rows.json`` is what the release before the parts wrote for the same examples.
"""

import json
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from trainmaster.adapters.dynamodb.attribute_values import from_attributes, to_attributes
from trainmaster.adapters.dynamodb.codec import decode, encode
from trainmaster.adapters.dynamodb.stored_names import PARTS

from tests.unit.adapters.stored import EXAMPLES

STORED: dict[str, Any] = json.loads(Path("tests/fixtures/stored_rows.json").read_text(encoding="utf-8"))
CASES = [(name, form) for name in EXAMPLES for form in ("full", "sparse")]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_each_stored_class_is_written_as_it_always_was(name: str, form: str) -> None:
    assert to_attributes(encode(getattr(EXAMPLES[name], form))) == STORED[name][form]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_row_that_was_always_written_so_is_read_as_the_same(name: str, form: str) -> None:
    example = getattr(EXAMPLES[name], form)
    assert decode(type(example), from_attributes(STORED[name][form])) == example


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_attribute_of_a_later_release_is_ignored(name: str) -> None:
    example = EXAMPLES[name].full
    row = from_attributes(STORED[name]["full"]) | {"of_a_later_release": {"x": 1}}
    assert decode(type(example), row) == example


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_row_of_an_earlier_release_lacks_all_that_has_a_default(name: str) -> None:
    example = EXAMPLES[name].sparse
    stored = from_attributes(STORED[name]["sparse"])
    row = {key: content for key, content in stored.items() if key in _mandatory(name)}
    assert to_attributes(encode(decode(type(example), row))) == STORED[name]["sparse"]


def _mandatory(name: str) -> set[str]:
    """Those without which it could not be read, and those in which the example is not as by default."""
    cls, stored = type(EXAMPLES[name].sparse), from_attributes(STORED[name]["sparse"])

    def is_needed(key: str) -> bool:
        try:
            read = decode(cls, {other: content for other, content in stored.items() if other != key})
        except TypeError:
            return True
        return bool(read != EXAMPLES[name].sparse)

    return {key for key in stored if is_needed(key)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_full_example_sets_every_field(name: str) -> None:
    assert [path for path, is_set in _leaves(EXAMPLES[name].full) if not is_set] == []


NEVER_STORED = {"share_ms"}
"""Made for one plan."""


def _leaves(record: Any, path: str = "") -> Iterator[tuple[str, bool]]:
    for field in fields(record):
        if field.name in NEVER_STORED or not field.init:  # the latter follow from the others
            continue
        content = getattr(record, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        yield f"{path}{field.name}", content is not None and content != default
        if is_dataclass(content):
            yield from _leaves(content, f"{path}{field.name}.")


def test_no_two_fields_of_a_row_are_kept_in_one_attribute() -> None:
    for name, example in EXAMPLES.items():
        leaves = [path for path, _ in _leaves(example.full) if not _is_in_a_map(example.full, path)]
        parts = [path for path in leaves if type(_at(example.full, path)) in PARTS]
        assert len(leaves) - len(parts) == len(encode(example.full)), name


def _at(record: Any, path: str) -> Any:
    for step in path.split("."):
        record = getattr(record, step)
    return record


def _is_in_a_map(record: Any, path: str) -> bool:
    """A dataclass that is no part has an attribute of its own, and its fields are in that."""
    owners = path.split(".")[:-1]
    return any(type(_at(record, ".".join(owners[: end + 1]))) not in PARTS for end in range(len(owners)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    at: str


def test_a_class_that_is_no_part_has_an_attribute_of_its_own() -> None:
    assert encode(Unknown(at="noon")) == {"at": "noon"}
