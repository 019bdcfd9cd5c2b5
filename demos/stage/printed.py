"""Reads the lines of a script: losses and evaluations to the last digit, samples by step, a refusal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

Document = dict[str, Any]

_LOSS = re.compile(r"(step|evaluation)=(\d+) loss=(\S+)")
_SAMPLES = re.compile(r"step=(\d+) samples=\[([\d, ]*)\]")
_REFUSAL = re.compile(r"(?:\[rank\d+\]: )?ValueError: (.+)")


def losses_of(lines: Iterable[str], kind: str = "step") -> list[list[str]]:
    """Return [step, loss] of each step, or of each ``evaluation``, as they were printed."""
    matches = filter(None, map(_LOSS.fullmatch, lines))
    return [[match[2], match[3]] for match in matches if match[1] == kind]


def printed_in(lines: Sequence[str]) -> Document:
    """Return losses, evaluations, and the samples of each step over all ranks."""
    samples: dict[str, list[int]] = {}
    for match in filter(None, map(_SAMPLES.fullmatch, lines)):
        samples.setdefault(match[1], []).extend(int(number) for number in match[2].split(","))
    return {
        "losses": losses_of(lines),
        "evaluations": losses_of(lines, "evaluation"),
        "samples": samples,
    }


def refusal_in(lines: Iterable[str]) -> str | None:
    """Return the sentence with which an adapter refused to resume, or None if none did."""
    return next((match[1] for line in lines if (match := _REFUSAL.fullmatch(line))), None)


def not_seen_once(parts: Iterable[Mapping[str, Sequence[int]]], *, samples: int) -> list[int]:
    """Return the samples that some epoch did not see exactly once; the last epoch may have begun only.

    Args:
        parts: Samples by step, for each attempt; a step of two attempts counts twice.
        samples: Number of samples in the whole data; they are numbered from 0.
    """
    steps = sorted(chain.from_iterable(part.items() for part in parts), key=lambda step: int(step[0]))
    order = [sample for _, seen in steps for sample in seen]
    wrong: set[int] = set()
    for start in range(0, len(order), samples):
        epoch = order[start : start + samples]
        wrong |= {sample for sample in epoch if epoch.count(sample) > 1}
        wrong |= set(range(samples)) - set(epoch) if len(epoch) == samples else set()
    return sorted(wrong)
