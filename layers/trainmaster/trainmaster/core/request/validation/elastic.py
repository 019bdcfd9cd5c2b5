"""Check the tag of an elastic job against the rest of its request."""

import json
from collections.abc import Iterator, Mapping

from trainmaster.core.field_paths import Path
from trainmaster.core.jobs.widths import BadWidthsError, Widths, read_widths
from trainmaster.core.memory.accelerators import gpus
from trainmaster.core.request.options import ALTERNATIVES, ELASTIC
from trainmaster.core.request.strict_json import Mistake
from trainmaster.core.request.validation.sections import Section, elements, section, text, whole_number

_RESOURCES = "ResourceConfig"
_GLOBAL_BATCHES = ("global_batch_size", "train_batch_size", "batch_size")
"""Hyperparameters that name the batch of all instances together, the most telling first.

An elastic job keeps its global batch, so a plain ``batch_size`` can be nothing else."""
_LONGEST_NUMBER = 9
"""Digits of a hyperparameter that is read."""
_MOST_NAMED = 8
"""Widths that a message or a hint names."""


def elastic_mistakes(body: Section) -> Iterator[Mistake]:
    """Yield what the tag excludes or contradicts; a value that is no list of widths is reported as a tag."""
    for index, tag in elements(body, "Tags"):
        if text(tag, "Key") == ELASTIC:
            yield from _excluded(body, ("Tags", index))
            widths = _widths(text(tag, "Value"))
            if widths is not None:
                yield from _other_count(body, widths, ("Tags", index, "Value"))
                yield from _indivisible(body, widths, ("Tags", index, "Value"))


def _widths(value: str | None) -> Widths | None:
    try:
        return read_widths(value or "")
    except BadWidthsError:
        return None


def _excluded(body: Section, at: Path) -> Iterator[Mistake]:
    """Yield the parts of the request that name other instances than one type in one number."""
    example = f"give one InstanceType, e.g. InstanceCount 8 with {ELASTIC}=2-8, or remove the tag"
    resources = section(body, _RESOURCES) or {}
    for way in ("InstanceGroups", "InstancePreferences"):
        if way in resources:
            yield Mistake(at, f"{ELASTIC} cannot be used together with {way}", example)
    if any(text(tag, "Key") == ALTERNATIVES for _, tag in elements(body, "Tags")):
        hint = f"keep one of the two tags, e.g. {ELASTIC}=2-8 with InstanceCount 8"
        yield Mistake(at, f"{ELASTIC} cannot be used together with {ALTERNATIVES}", hint)
    if body.get("EnableManagedSpotTraining") is True:
        hint = f"remove EnableManagedSpotTraining and keep e.g. {ELASTIC}=2-8, or remove the tag"
        yield Mistake(at, f"{ELASTIC} cannot be used together with managed spot training", hint)


def _other_count(body: Section, widths: Widths, at: Path) -> Iterator[Mistake]:
    count = whole_number(section(body, _RESOURCES) or {}, "InstanceCount")
    if count is None or count == widths.largest:
        return
    message = (
        f"of {ELASTIC} has {widths.largest} as its largest width, but ResourceConfig.InstanceCount is {count}"
    )
    instead = f"{widths.least}-{count}" if count > widths.least else f"1-{count}"
    wider = f"write e.g. {instead}, or " if count > 1 else ""
    yield Mistake(at, message, f"{wider}set InstanceCount to {widths.largest}")


def _indivisible(body: Section, widths: Widths, at: Path) -> Iterator[Mistake]:
    """Refuse widths among which the global batch of the hyperparameters cannot be divided evenly."""
    given = _hyperparameters(body)
    name = next((name for name in _GLOBAL_BATCHES if name in given), None)
    batch = _number(given.get(name or "", ""))
    if name is None or batch is None:
        return
    shares = _shares_of_an_instance(body, given)
    bad = [width for width in widths.counts if batch % _even(width * shares[0], shares[1]) != 0]
    if not bad:
        return
    good = [
        width for width in range(1, widths.largest + 1) if batch % _even(width * shares[0], shares[1]) == 0
    ]
    message = (
        f"of {ELASTIC} has the {'width' if len(bad) == 1 else 'widths'} {_named(bad)}, among which the global"
        f" batch of {batch} ({name}) does not divide"
    )
    fits = f"use widths that divide it, e.g. {_named(good)}" if len(good) > 1 else "use another batch"
    yield Mistake(at, message, f"{fits}, or change {name}")


def _shares_of_an_instance(body: Section, given: Mapping[str, str]) -> tuple[int, int]:
    """Return how many ranks an instance has, and how many of them get the same samples.

    Only of a request with a ``preset``, which is of the training program here: it has a rank for each GPU.
    Other programs divide their batch at least among the instances.
    """
    if "preset" not in given or given.get("strategy", "").lower() == "tp":
        return 1, 1
    instance_type = text(section(body, _RESOURCES) or {}, "InstanceType") or ""
    parts = _number(given.get("gradient_accumulation_steps", "")) or 1
    return (gpus(instance_type) or 1) * parts, _number(given.get("tensor_parallel", "")) or 1


def _even(ranks: int, alike: int) -> int:
    return max(ranks // alike, 1)


def _hyperparameters(body: Section) -> dict[str, str]:
    """Return the hyperparameters under names with underscores; the SDK writes JSON, boto3 plain text."""
    given = section(body, "HyperParameters") or {}
    return {key.replace("-", "_"): _plain(value) for key, value in given.items() if isinstance(value, str)}


def _plain(value: str) -> str:
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, str) else value


def _number(value: str) -> int | None:
    """Return a whole number of at least 1; None for any other text."""
    is_number = value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER
    return int(value) or None if is_number else None


def _named(widths: list[int]) -> str:
    shown = " ".join(str(width) for width in widths[:_MOST_NAMED])
    return shown if len(widths) <= _MOST_NAMED else f"{shown} ..."
