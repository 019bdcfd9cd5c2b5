"""Draws the worlds of a scaling measurement: tokens a second, efficiency, share of collectives."""

from itertools import cycle
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_INCHES = (10.5, 4.8)
_DOTS_PER_INCH = 110
_BLUE, _ORANGE, _GREY, _RED = "#1f6fb2", "#d1731f", "#8a929c", "#b03060"


def draw(facts: dict[str, Any], path: Path) -> None:
    """As PNG, without a display. A world that failed is named and left out."""
    done = [one for one in facts["worlds"] if one["tokens_per_second"]]
    failed = [str(one["world"]) for one in facts["worlds"] if not one["ok"]]
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


def _draw_speed(axes: Axes, done: list[dict[str, Any]]) -> None:
    worlds = [one["world"] for one in done]
    if done:
        each = done[0]["tokens_per_second_of_a_rank"]
        axes.plot(worlds, [each * one for one in worlds], "--", color=_GREY, label="as the smallest world")
    axes.plot(worlds, [one["tokens_per_second"] for one in done], "o-", color=_BLUE, label="measured")
    axes.set_xlabel("ranks")
    axes.set_ylabel("tokens a second")
    axes.set_xticks(worlds, [str(one) for one in worlds])
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(fontsize=8, framealpha=1, edgecolor="white")


def _draw_efficiency(axes: Axes, done: list[dict[str, Any]], yardsticks: list[dict[str, Any]]) -> None:
    places, worlds = range(len(done)), [str(one["world"]) for one in done]
    bars = axes.bar(places, [100 * one["efficiency"] for one in done], 0.55, color=_BLUE, label="efficiency")
    axes.bar_label(bars, fmt="%.0f %%", fontsize=8)
    shares = [
        (at, 100 * one["communication_share"])
        for at, one in enumerate(done)
        if one["communication_share"] is not None
    ]
    axes.plot(
        [at for at, _ in shares],
        [share for _, share in shares],
        "o",
        color=_ORANGE,
        label="collectives under way",
    )
    for one, pattern in zip(yardsticks, cycle(("--", ":", "-.")), strict=False):
        level = 100 * one["efficiency"]
        told = f"{level:.0f} %, others: {one['what']}"
        axes.axhline(level, color=_GREY, linestyle=pattern, linewidth=1, zorder=0, label=told)
    axes.set_xticks(list(places), worlds)
    axes.set_xlabel("ranks")
    axes.set_ylabel("percent")
    axes.set_ylim(0, 110)
    axes.legend(fontsize=7, loc="lower left", bbox_to_anchor=(0, 1), frameon=False, ncols=1)
