"""How much of a step's trace its collectives take."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Span = tuple[float, float]


def communication_share(trace: Path) -> float | None:
    """Of the traced time, in which at least one collective was under way, hidden behind work or not.

    On GPUs those are NCCL's kernels; on CPUs gloo's own marks, with the votes of the ranks among them.
    None: the trace has no events.
    """
    return _share(json.loads(trace.read_bytes())["traceEvents"])


def _share(events: Iterable[Mapping[str, Any]]) -> float | None:
    timed = [one for one in events if one.get("ph") == "X" and one.get("dur", 0) > 0]
    if not timed:
        return None
    spans: list[Span] = [(one["ts"], one["ts"] + one["dur"]) for one in timed]
    whole = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return _covered([span for one, span in zip(timed, spans, strict=True) if _is_collective(one)]) / whole


def _is_collective(event: Mapping[str, Any]) -> bool:
    name, kind = str(event["name"]).lower(), event.get("cat", "")
    return name.startswith("gloo:") or (kind == "kernel" and name.startswith("nccl"))


def _covered(spans: Iterable[Span]) -> float:
    """Of time, by any of them."""
    covered, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return covered
