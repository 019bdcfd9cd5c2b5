"""Facts that a tournament reports of each replay, and the lines of its events."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.replay.heats import Field, Outcome


def cells(field: Field, outcome: Outcome) -> list[dict[str, Any]]:
    """Return the cells by decider, with the bound of them all."""
    draw = outcome.draw
    where = {"window": field.windows[draw.window].number, "load": draw.load, "requests": draw.requests.value}
    replays = [where | run.as_json() for run in outcome.runs]
    return [*replays, where | {"seed": draw.seed, "algorithm": "bound"} | outcome.bound.as_json()]


def write_events(path: Path, field: Field, outcomes: Iterable[Outcome]) -> None:
    """Write a line an attempt."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as lines:
        for outcome in outcomes:
            draw = outcome.draw
            where = {
                "window": field.windows[draw.window].number,
                "load": draw.load,
                "seed": draw.seed,
                "requests": draw.requests.value,
            }
            for run in outcome.runs:
                for row in run.rows:
                    lines.write(json.dumps(where | {"algorithm": run.algorithm} | row._asdict()) + "\n")
