"""What a new policy changes: lines of the document, and what becomes of jobs."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from typing import Any

import yaml

from trainmaster_client.http.printable import printable

_MEANINGS = {
    "forbidden": "would be refused when its turn comes",
    "impossible": "can never start",
    "preempted": "would be stopped for another job and come back",
    "stops-waiting": "would wait no longer",
    "starts": "would start",
    "waits": "would wait",
}
"""Worst news first."""
_RANKS = {kind: rank for rank, kind in enumerate(_MEANINGS)}

NO_NAME = "a job"


def document_lines(old: object, new: object, *, old_name: str, new_name: str) -> list[str]:
    """A unified diff of both as YAML. Where a key stands in its mapping makes no difference."""
    return list(unified_diff(_lines(old), _lines(new), old_name, new_name, lineterm=""))


def job_lines(changes: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """One line a job, the worst news first."""
    for change in sorted(changes, key=lambda one: _RANKS.get(_kind(one), -1)):
        place = f"team {printable(change.get('team'))}, pool {printable(change.get('pool'))}"
        meaning = _MEANINGS.get(_kind(change), _kind(change))
        message = printable(change.get("message"))
        name = printable(change.get("job")) or NO_NAME
        yield f"{name} ({place}) {meaning}{f': {message}' if message else ''}"


def _kind(change: Mapping[str, Any]) -> str:
    return printable(change.get("change"))


def _lines(document: object) -> list[str]:
    return yaml.safe_dump(_ordered(document), sort_keys=False).splitlines()


def _ordered(value: object) -> object:
    """Keys in one order, so that two ways of writing one document are equal: ``name``, then the others."""
    if isinstance(value, list):
        return [_ordered(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {key: _ordered(value[key]) for key in sorted(value, key=lambda key: (key != "name", str(key)))}
