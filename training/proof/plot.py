"""Shows the runs: as a table, and the losses of the interrupted ones drawn over the uninterrupted one."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Facts = dict[str, Any]

_INCHES = (11.0, 7.5)
_DOTS_PER_INCH = 110
_REFERENCE: dict[str, Any] = {"color": "#c9ced6", "linewidth": 7, "solid_capstyle": "round", "zorder": 1}
_COLORS = ("#1f6fb2", "#d1731f", "#2e8b57", "#8a4fb0", "#b03060", "#5b6b1f")
_TRAINED_AGAIN: dict[str, Any] = {
    "color": "#b03060",
    "marker": "o",
    "markersize": 9,
    "fillstyle": "none",
    "linestyle": "none",
}
_NO_DIFFERENCE = 1e-12
"""Where zero is drawn on the logarithmic scale."""


def draw(facts: Facts, path: Path) -> None:
    """As PNG, without a display; there must be a run that was interrupted."""
    runs = {run["id"]: run for run in facts["runs"]}
    interrupted = [run for run in runs.values() if run["reference"]]
    apart = {run["id"]: differences(run, runs[run["reference"]]) for run in interrupted}
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=_INCHES, dpi=_DOTS_PER_INCH, layout="constrained")
        axes = figure.subplots(
            2, len(interrupted), sharex=True, sharey="row", squeeze=False, height_ratios=[3, 1]
        )
        for column, run in enumerate(interrupted):
            _draw_losses(axes[0][column], run, runs[run["reference"]])
            _draw_differences(axes[1][column], apart[run["id"]])
        farthest = max((value for rows in apart.values() for _, value in rows), default=0.0)
        _mark_limit(axes[1], facts["tolerance"], farthest=farthest)
        axes[0][0].set_ylabel("loss, nats per token")
        axes[1][0].set_ylabel("difference of the losses")
        figure.suptitle(f"Killed and resumed, over the run that nobody interrupted (seed {facts['seed']})")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _draw_losses(axes: Axes, run: Facts, reference: Facts) -> None:
    axes.set_title(run["id"], fontsize=10)
    axes.plot(*_curve(reference["losses"]), **_REFERENCE, label="uninterrupted")
    again: list[Any] = []
    seen: set[int] = set()
    for number, (attempt, losses) in enumerate(_by_attempt(run)):
        label = f"attempt {number}, ranks: {attempt['world']}"
        color = _COLORS[number % len(_COLORS)]
        axes.plot(*_curve(losses), color=color, marker=".", markersize=5, linewidth=1.3, label=label)
        _mark_kill(axes, attempt, color)
        again += [row for row in losses if row[0] in seen]
        seen |= {step for step, _ in losses}
    if again:
        axes.plot(*_curve(again), **_TRAINED_AGAIN, label="trained again")
    axes.grid(axis="y", alpha=0.25)
    axes.legend(fontsize=8, loc="lower left", framealpha=1, edgecolor="white")


def _mark_kill(axes: Axes, attempt: Facts, color: str) -> None:
    if attempt["signal"] is None or attempt["last_step"] is None:
        return
    axes.axvline(attempt["last_step"] + 0.5, color=color, linestyle=":", linewidth=1)
    name = "SIG" + attempt["signal"].partition(":")[2]
    axes.annotate(
        name,
        (attempt["last_step"] + 0.5, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(3, 0),
        textcoords="offset points",
        rotation=90,
        ha="left",
        va="top",
        fontsize=8,
        color=color,
    )


def _draw_differences(axes: Axes, rows: Sequence[tuple[int, float]]) -> None:
    equal = [step for step, apart in rows if not apart]
    apart = [(step, apart) for step, apart in rows if apart]
    axes.set_yscale("log")
    axes.plot(equal, [_NO_DIFFERENCE] * len(equal), "|", color="#2e8b57")
    axes.plot([step for step, _ in apart], [value for _, value in apart], ".", color="#b03060")
    axes.set_xlabel("step")


def _mark_limit(row: Iterable[Axes], limit: float, *, farthest: float) -> None:
    """In every picture, on one scale that leaves no point out."""
    for axes in row:
        axes.set_ylim(_NO_DIFFERENCE / 5, max(limit, farthest) * 10)
        axes.axhline(limit, color="#666666", linestyle="--", linewidth=1)
        axes.set_yticks([_NO_DIFFERENCE, 1e-9, limit], ["same bits", "1e-9", f"limit {limit:g}"])
        axes.minorticks_off()


def _by_attempt(run: Facts) -> Iterator[tuple[Facts, list[Any]]]:
    rest = list(run["losses"])
    for attempt in run["attempts"]:
        yield attempt, rest[: attempt["steps_trained"]]
        rest = rest[attempt["steps_trained"] :]


def _curve(losses: list[Any]) -> tuple[list[int], list[float]]:
    return [step for step, _ in losses], [float.fromhex(loss) for _, loss in losses]


_HEAD = ("RUN", "RANKS", "EXIT CODES", "REPLAYED", "LARGEST DIFFERENCE", "WEIGHTS", "OPTIMIZER")
_HASH_CHARACTERS = 12


def print_runs(facts: Facts) -> None:
    runs = {run["id"]: run for run in facts["runs"]}
    rows = [_HEAD, *(_row(run, runs.get(run["reference"])) for run in runs.values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()


def differences(run: Facts, reference: Facts) -> list[tuple[int, float]]:
    """(step, how far its loss is from the uninterrupted run's), in the order in which they were trained."""
    wanted = {step: float.fromhex(loss) for step, loss in reference["losses"]}
    return [(step, abs(float.fromhex(loss) - wanted[step])) for step, loss in run["losses"] if step in wanted]


def _row(run: Facts, reference: Facts | None) -> tuple[str, ...]:
    hashes = run["final_hashes"] or {}
    worst = max((apart for _, apart in differences(run, reference)), default=None) if reference else None
    return (
        run["id"],
        ",".join(map(str, run["worlds"])),
        ",".join(map(str, run["exit_codes"])),
        str(run["steps_replayed"]),
        "-" if worst is None else f"{worst:.1e}" if worst else "0",
        hashes.get("params", "-")[:_HASH_CHARACTERS],
        hashes.get("optimizer", "-")[:_HASH_CHARACTERS],
    )
