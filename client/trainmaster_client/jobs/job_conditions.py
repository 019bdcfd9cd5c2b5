"""The jobs that a job is to wait for, as the tags that say so: ``afterok:prepare`` and the like."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias

from trainmaster_client.errors import FieldProblem, InvalidOptionsError

TYPES = ("afterok", "afterany", "afternotok", "aftercorr")
MOST_TAGS = 10
MOST_CHARACTERS = 256
"""Longest value of one tag. Source: SageMaker API reference, Tag."""
AFTER_TAG = "trainmaster:after"
AFTER_FAILED_TAG = "trainmaster:after-failed"
AFTER_FAILED = ("stop", "hold")
"""Ways to treat a job once one of its conditions can no longer hold."""
_NAME = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}")


class Named(Protocol):
    """A handle on a job."""

    @property
    def name(self) -> str: ...


Conditions: TypeAlias = str | Named | Sequence[str | Named]
"""Names, conditions such as ``afterany:clean``, handles, or several of them."""


def condition_texts(after: Conditions) -> list[str]:
    """Return each condition as a tag has it.

    Raises:
        InvalidOptionsError: Lists all that is wrong with them.
    """
    given = [after] if isinstance(after, str) or not isinstance(after, Sequence) else list(after)
    written = [parent if isinstance(parent, str) else parent.name for parent in given]
    texts = [part for text in written for part in text.split()]
    problems = [problem for text in texts if (problem := _problem(text)) is not None]
    if problems:
        raise InvalidOptionsError(tuple(problems))
    return texts


def _problem(text: str) -> FieldProblem | None:
    kind, colon, name = text.rpartition(":")
    if colon and kind not in TYPES:
        near = get_close_matches(kind.lower(), TYPES, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        hint = f"{meant}use one of {', '.join(TYPES)}"
        return FieldProblem(field="after", message=f"{kind!r} is not a type of condition", hint=hint)
    if _NAME.fullmatch(name) is None:
        hint = "give names of jobs, like 'prepare' or 'afterany:prepare'"
        return FieldProblem(field="after", message=f"{name!r} names no job", hint=hint)
    return None


def condition_tags(after: Conditions) -> list[dict[str, str]]:
    """Spread conditions over as few tags as hold them.

    Raises:
        InvalidOptionsError: Lists all that is wrong with them.
    """
    values: list[str] = []
    for text in condition_texts(after):
        if values and len(values[-1]) + 1 + len(text) <= MOST_CHARACTERS:
            values[-1] = f"{values[-1]} {text}"
        else:
            values.append(text)
    if len(values) > MOST_TAGS:
        hint = "have it wait for one job that waits for the others"
        problem = FieldProblem(field="after", message=f"takes {len(values)} tags of {MOST_TAGS}", hint=hint)
        raise InvalidOptionsError((problem,))
    return [{"Key": _key(number), "Value": value} for number, value in enumerate(values, start=1)]


def _key(number: int) -> str:
    return AFTER_TAG if number == 1 else f"{AFTER_TAG}.{number}"


def with_conditions(
    request: Mapping[str, Any], after: Conditions | None, *, after_failed: str | None = None
) -> dict[str, Any]:
    """Return a CreateTrainingJob request that waits for other jobs, instead of those that it had.

    Args:
        request: As boto3 takes it.
        after: None: the request's own conditions stay.
        after_failed: ``hold`` or ``stop``; None: the request's own stays.

    Raises:
        InvalidOptionsError: Lists all that is wrong with the conditions.
    """
    tags = list(request.get("Tags") or ())
    if after is not None:
        tags = [*_without(tags, {_key(number) for number in range(1, MOST_TAGS + 1)}), *condition_tags(after)]
    if after_failed is not None:
        if after_failed not in AFTER_FAILED:
            hint = f"use one of {', '.join(AFTER_FAILED)}"
            message = f"{after_failed!r} is not allowed"
            raise InvalidOptionsError((FieldProblem(field="after_failed", message=message, hint=hint),))
        tags = [*_without(tags, {AFTER_FAILED_TAG}), {"Key": AFTER_FAILED_TAG, "Value": after_failed}]
    return {**request, "Tags": tags} if tags else dict(request)


def _without(tags: Iterable[dict[str, str]], keys: set[str]) -> list[dict[str, str]]:
    return [tag for tag in tags if tag.get("Key") not in keys]
