"""Presents what the worlds of a scaling measurement showed: figures, caveats, and the chart.

Also how much of a step's trace its collectives take. Only the chart needs matplotlib: a cluster's image need
not have it.
"""

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
_INCHES = (10.5, 4.8)
_DOTS_PER_INCH = 110
_BLUE, _ORANGE, _GREY, _RED = "#1f6fb2", "#d1731f", "#8a929c", "#b03060"

Span = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One world: its processes have ended."""

    world: int
    tokens_per_step: int
    step_seconds: tuple[float, ...]
    """Seconds of the steps after the warm-up; empty if it failed."""
    communication_share: float | None
    """Share of one traced step; None if there is no trace."""
    error: str
    """Error in words; empty if it did not fail."""

    @property
    def tokens_per_second(self) -> float | None:
        """Speed by the median step: a step that something else held up is not the program's."""
        return self.tokens_per_step / statistics.median(self.step_seconds) if self.step_seconds else None


def caveat(worlds: Sequence[int], *, device: str, cores: int) -> str:
    """Say why the figures tell nothing about scaling; empty if they may."""
    if device != "cpu":
        return ""
    if max(worlds) > cores:
        return (
            f"{max(worlds)} ranks share {cores} cores: this tests the command and says nothing about scaling"
        )
    return "ranks of one CPU share its memory: this tests the command and says little about scaling"


def facts(measured: Sequence[Measured], *, told: Mapping[str, object], warning: str) -> dict[str, Any]:
    """Return the facts; efficiency is a rank's tokens a second against the smallest measured world's."""
    speeds = {
        world.world: world.tokens_per_second / world.world for world in measured if world.tokens_per_second
    }
    base = min(speeds, default=None)
    return {
        "schema": "trainmaster.scaling/1",
        "kind": "weak: every rank has equally many sequences in each world",
        "efficiency_of": "tokens a second of a rank, against the smallest world that was measured",
        "communication_share_of": "the time of one traced step on the first rank, hidden or not",
        "says_nothing_about_scaling": warning or None,
        **told,
        "worlds": [_of_world(world, speeds, base) for world in measured],
        "yardsticks": [dict(yardstick) for yardstick in YARDSTICKS],
    }


def _of_world(measured: Measured, speeds: Mapping[int, float], base: int | None) -> dict[str, Any]:
    speed = speeds.get(measured.world)
    return {
        "world": measured.world,
        "ok": not measured.error,
        "tokens_per_second": measured.tokens_per_second,
        "tokens_per_second_of_a_rank": speed,
        "efficiency": None if speed is None or base is None else speed / speeds[base],
        "communication_share": measured.communication_share,
        "steps_measured": len(measured.step_seconds),
        "step_seconds": list(measured.step_seconds),
        "tokens_per_step": measured.tokens_per_step,
        "error": measured.error or None,
    }


def communication_share(trace: Path) -> float | None:
    """Return the share of traced time with a collective under way, hidden behind work or not.

    On GPUs those are NCCL's kernels; on CPUs gloo's own marks, with the votes of the ranks among them.
    None: the trace has no events.
    """
    return _share(json.loads(trace.read_bytes())["traceEvents"])


def _share(events: Iterable[Mapping[str, Any]]) -> float | None:
    timed = [event for event in events if event.get("ph") == "X" and event.get("dur", 0) > 0]
    if not timed:
        return None
    spans: list[Span] = [(event["ts"], event["ts"] + event["dur"]) for event in timed]
    whole = max(end for _, end in spans) - min(begin for begin, _ in spans)
    return _covered([span for event, span in zip(timed, spans, strict=True) if _is_collective(event)]) / whole


def _is_collective(event: Mapping[str, Any]) -> bool:
    name, kind = str(event["name"]).lower(), event.get("cat", "")
    return name.startswith("gloo:") or (kind == "kernel" and name.startswith("nccl"))


def _covered(spans: Iterable[Span]) -> float:
    """Return the time that any of the spans covers."""
    covered, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        covered += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return covered


def draw(facts: dict[str, Any], path: Path) -> None:
    """Draw the chart as PNG, without a display. A world that failed is named and left out.

    Raises:
        ModuleNotFoundError: There is no matplotlib.
    """
    import matplotlib as mpl  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    done = [world for world in facts["worlds"] if world["tokens_per_second"]]
    failed = [str(world["world"]) for world in facts["worlds"] if not world["ok"]]
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=_INCHES, dpi=_DOTS_PER_INCH, layout="constrained")
        left, right = figure.subplots(1, 2)
        _draw_speed(left, done)
        _draw_efficiency(right, done, facts["yardsticks"])
        title = f"{facts['model']}, {facts['precision']}, {facts['strategy']}, on {facts['device']}"
        figure.suptitle(title + (f" (failed: {', '.join(failed)} ranks)" if failed else ""))
        if facts["says_nothing_about_scaling"]:
            figure.supxlabel(facts["says_nothing_about_scaling"], color=_RED, fontsize=10, weight="bold")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _draw_speed(axes: "Axes", done: list[dict[str, Any]]) -> None:
    worlds = [row["world"] for row in done]
    if done:
        each = done[0]["tokens_per_second_of_a_rank"]
        axes.plot(
            worlds, [each * world for world in worlds], "--", color=_GREY, label="as the smallest world"
        )
    axes.plot(worlds, [row["tokens_per_second"] for row in done], "o-", color=_BLUE, label="measured")
    axes.set_xlabel("ranks")
    axes.set_ylabel("tokens a second")
    axes.set_xticks(worlds, [str(world) for world in worlds])
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(fontsize=8, framealpha=1, edgecolor="white")


def _draw_efficiency(axes: "Axes", done: list[dict[str, Any]], yardsticks: list[dict[str, Any]]) -> None:
    places, worlds = range(len(done)), [str(row["world"]) for row in done]
    bars = axes.bar(places, [100 * row["efficiency"] for row in done], 0.55, color=_BLUE, label="efficiency")
    axes.bar_label(bars, fmt="%.0f %%", fontsize=8)
    traced = {at: row for at, row in enumerate(done) if row["communication_share"] is not None}
    shares = [100 * row["communication_share"] for row in traced.values()]
    axes.plot(list(traced), shares, "o", color=_ORANGE, label="collectives under way")
    for yardstick, pattern in zip(yardsticks, cycle(("--", ":", "-.")), strict=False):
        level = 100 * yardstick["efficiency"]
        label = f"{level:.0f} %, others: {yardstick['what']}"
        axes.axhline(level, color=_GREY, linestyle=pattern, linewidth=1, zorder=0, label=label)
    axes.set_xticks(list(places), worlds)
    axes.set_xlabel("ranks")
    axes.set_ylabel("percent")
    axes.set_ylim(0, 110)
    axes.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=1)
