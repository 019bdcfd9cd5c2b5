"""What the worlds of a scaling measurement came to, and what may be said of it. Nothing is run here.

Also how much of a step's trace its collectives take.
"""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

YARDSTICKS: Sequence[Mapping[str, object]] = (
    {
        "efficiency": 0.87,
        "what": "16 nodes of p5.48xlarge, Llama 2, FSDP",
        "source": "AWS and PyTorch, Scale LLMs with PyTorch 2.0 FSDP on Amazon EKS, part 2",
    },
    {
        "efficiency": 0.97,
        "what": "128 H100 against 8, Llama 3 8B, FSDP2",
        "source": "torchtitan, benchmarks/llama3_h100_202412",
    },
)
"""Published by others; nothing of it was measured here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One world: its processes have ended."""

    world: int
    tokens_per_step: int
    step_seconds: tuple[float, ...]
    """Of the steps after the warm-up; empty where it failed."""
    communication_share: float | None
    """Of one traced step; None: there is no trace."""
    error: str
    """Empty where it did not fail."""

    @property
    def tokens_per_second(self) -> float | None:
        """By the median step: a step that something else held up is not the program's."""
        return self.tokens_per_step / statistics.median(self.step_seconds) if self.step_seconds else None


def caveat(worlds: Sequence[int], *, device: str, cores: int) -> str:
    """Why the figures say nothing about scaling; empty: they may."""
    if device != "cpu":
        return ""
    if max(worlds) > cores:
        return (
            f"{max(worlds)} ranks share {cores} cores: this tests the command and says nothing about scaling"
        )
    return "ranks of one CPU share its memory: this tests the command and says little about scaling"


def facts(measured: Sequence[Measured], *, told: Mapping[str, object], warning: str) -> dict[str, Any]:
    """Efficiency is tokens a second of a rank, against the smallest world that was measured."""
    speeds = {one.world: one.tokens_per_second / one.world for one in measured if one.tokens_per_second}
    base = min(speeds, default=None)
    return {
        "schema": "trainmaster.scaling/1",
        "kind": "weak: every rank has equally many sequences in each world",
        "efficiency_of": "tokens a second of a rank, against the smallest world that was measured",
        "communication_share_of": "the time of one traced step on the first rank, hidden or not",
        "says_nothing_about_scaling": warning or None,
        **told,
        "worlds": [_of_world(one, speeds, base) for one in measured],
        "yardsticks": [dict(one) for one in YARDSTICKS],
    }


def _of_world(one: Measured, speeds: Mapping[int, float], base: int | None) -> dict[str, Any]:
    speed = speeds.get(one.world)
    return {
        "world": one.world,
        "ok": not one.error,
        "tokens_per_second": one.tokens_per_second,
        "tokens_per_second_of_a_rank": speed,
        "efficiency": None if speed is None or base is None else speed / speeds[base],
        "communication_share": one.communication_share,
        "steps_measured": len(one.step_seconds),
        "step_seconds": list(one.step_seconds),
        "tokens_per_step": one.tokens_per_step,
        "error": one.error or None,
    }


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
