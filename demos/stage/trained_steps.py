"""Reads which steps the training program trained, from its metrics_file and samples_file, as they grow."""

import json
from pathlib import Path
from typing import Any

from demos.stage.evidence import Document


def _records(file: Path) -> list[Document]:
    """Read whole lines of JSON; a line that is being written is left for later."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def newest_step(metrics: Path) -> int:
    return max((int(record["step"]) for record in _records(metrics)), default=0)


def losses_in(metrics: Path) -> list[list[Any]]:
    """Return [step, width, loss] of each step, in the order of training."""
    return [[record["step"], record["width"], record["loss"]] for record in _records(metrics)]


def samples_in(file: Path) -> dict[str, list[int]]:
    """Return the samples of each step over all ranks, by the step as text; those of all attempts together."""
    samples: dict[str, list[int]] = {}
    for record in _records(file):
        samples.setdefault(str(record["step"]), []).extend(record["samples"])
    return samples
