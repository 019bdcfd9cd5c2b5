"""Presents what the runs of a proof showed: checks, a table, and curves of their losses."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile
from math import inf
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from trainmaster_client.report import Report

from benchmarks.training.proof.kill_schedule import KILLED, allowed_exits

TOLERANCE = 1e-7
"""Largest difference of a loss (nats per token, fp32) once the number of ranks has changed: the order in
which sums are rounded is another one then."""
TOLERANCE_OF_IMAGES = 1e-6
"""The loss of a step is the mean over as many predictions as images, not over thousands of tokens: what their
rounding leaves (a loss of 7 in fp32 is known to 5e-7) hardly evens out."""
_HEAD = ("RUN", "RANKS", "EXIT CODES", "REPLAYED", "LARGEST DIFFERENCE", "WEIGHTS", "OPTIMIZER")
_HASH_CHARACTERS = 12
_INCHES = (11.0, 7.5)
_DOTS_PER_INCH = 110
_COLORS = ("#1f6fb2", "#d1731f", "#2e8b57", "#8a4fb0", "#b03060", "#5b6b1f")
_NO_DIFFERENCE = 1e-12
"""Place where zero is drawn on the logarithmic scale."""

Facts = dict[str, Any]
Loss = tuple[int, float]
"""A step, and its loss or how far that is from another."""


def check(report: Report) -> None:
    """Hold every run to the schedule, and to the run that nobody interrupted."""
    facts = report.facts
    runs: dict[str, Facts] = {run["id"]: run for run in facts["runs"]}
    if facts.get("spoilings"):
        _check_trials(report, facts["spoilings"])
    for run in runs.values():
        _check_course(report, run, steps=facts["steps"])
        if run["reference"] is not None:
            if run["spoils"]:
                _check_spoiled(report, run)
            else:
                _check_replays(report, run, most=2 * facts["checkpoint_every"])
            _check_losses(report, run, runs[run["reference"]], tolerance=facts["tolerance"])
        if run["reference"] is not None and len(set(run["worlds"])) == 1:
            _check_hashes(report, run, runs[run["reference"]])


def _check_trials(report: Report, trials: list[Facts]) -> None:
    missed = [trial["what"] for trial in trials if not trial["found"]]
    report.check(
        "spoiled-shards-found",
        expected=f"{len(trials)} of {len(trials)}",
        actual=f"{len(trials) - len(missed)} of {len(trials)}"
        + "".join(f"; missed {trial}" for trial in missed),
        ok=not missed,
    )


def _check_spoiled(report: Report, run: Facts) -> None:
    """Check that each attempt after a spoiled checkpoint named it, and resumed from an earlier one."""
    spoiled = [attempt for attempt in run["attempts"] if attempt["spoiled"]]
    names = [attempt["spoiled"].partition(":")[0] for attempt in spoiled]
    passed_over = [
        name
        for name, attempt in zip(names, spoiled, strict=True)
        if any(line.startswith(f"skipping torn checkpoint {name}: ") for line in attempt["said"])
        and attempt["first_step"] is not None
        and attempt["first_step"] <= int(name.removeprefix("step-"))
    ]
    report.check(
        f"{run['id']}-passed-over",
        expected=names,
        actual=passed_over,
        ok=bool(names) and names == passed_over,
    )


def _check_hashes(report: Report, run: Facts, reference: Facts) -> None:
    """Check that weights and optimizer end byte for byte as they do without a kill."""
    actual, wanted = run["final_hashes"], reference["final_hashes"]
    report.check(
        f"{run['id']}-final-hashes",
        expected=wanted,
        actual=actual,
        ok=actual is not None and actual == wanted,
    )


def _check_course(report: Report, run: Facts, *, steps: int) -> None:
    """Check that the run was killed as the schedule says, and trained every step."""
    allowed = _allowed_exits(run, steps)
    report.check(
        f"{run['id']}-exit-codes",
        expected=[codes[0] for codes in allowed],
        actual=run["exit_codes"],
        ok=len(allowed) == len(run["exit_codes"])
        and all(code in codes for code, codes in zip(run["exit_codes"], allowed, strict=True)),
    )
    trained = {step for step, _ in run["losses"]}
    missing = sorted(set(range(1, steps + 1)) - trained)
    report.check(f"{run['id']}-steps-missing", expected=[], actual=missing)


def _allowed_exits(run: Facts, steps: int) -> list[list[int]]:
    """Return the allowed exit codes of each attempt, one for each world."""
    allowed: list[list[int]] = []
    done = 0
    for number, kill in enumerate([*run["signals"], None]):
        attempt = dict(enumerate(run["attempts"])).get(number, {"sent_at": None, "last_step": None})
        allowed.append(allowed_exits(kill, sent_at=attempt["sent_at"], done=done, steps=steps))
        done = max(done, attempt["last_step"] or 0)
    return allowed


def _check_replays(report: Report, run: Facts, *, most: int) -> None:
    """Check steps lost: an announced stop costs none, another one what no checkpoint held."""
    lost = {"announced": 0, "unannounced": 0}
    for before, after in pairwise(run["attempts"]):
        if before["last_step"] is not None and after["first_step"] is not None:
            kind = "unannounced" if before["exit_code"] == KILLED else "announced"
            lost[kind] = max(lost[kind], before["last_step"] + 1 - after["first_step"])
    report.check(f"{run['id']}-steps-lost-when-asked", expected=0, actual=lost["announced"])
    if any(kill.endswith(("KILL", "SAVE")) for kill in run["signals"]):
        report.check(
            f"{run['id']}-steps-lost-when-killed",
            expected=f"at most {most}, two intervals of checkpoints",
            actual=lost["unannounced"],
            ok=lost["unannounced"] <= most,
        )


def _check_losses(report: Report, run: Facts, reference: Facts, *, tolerance: float) -> None:
    """Check losses: equal to the last bit with the reference's number of ranks, then within rounding."""
    wanted = {step: float.fromhex(loss) for step, loss in reference["losses"]}
    same, other = _divided(run, reference["worlds"][0])
    differing = [step for step, loss in same if loss != wanted.get(step)]
    report.check(
        f"{run['id']}-same-bits",
        expected="every loss equal to the last bit",
        actual=f"{len(same)} losses" + (f", steps {differing[:5]} differ" if differing else ", all equal"),
        ok=bool(same) and not differing,
    )
    if other:
        apart = [abs(loss - wanted.get(step, inf)) for step, loss in other]
        report.check(
            f"{run['id']}-close",
            expected=f"every loss within {tolerance} once the number of ranks has changed",
            actual=f"{len(other)} losses, largest difference {max(apart):.1e}",
            ok=all(difference <= tolerance for difference in apart),  # nan is not
        )


def _divided(run: Facts, world: int) -> tuple[list[Loss], list[Loss]]:
    """Return the losses before and after the number of ranks first changed."""
    unchanged = takewhile(lambda attempt: attempt["world"] == world, run["attempts"])
    same = sum(attempt["steps_trained"] for attempt in unchanged)
    losses = [(step, float.fromhex(loss)) for step, loss in run["losses"]]
    return losses[:same], losses[same:]


def print_runs(facts: Facts) -> None:
    runs = {run["id"]: run for run in facts["runs"]}
    rows = [_HEAD, *(_row(run, runs.get(run["reference"])) for run in runs.values())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print()


def differences(run: Facts, reference: Facts) -> list[Loss]:
    """Return (step, distance of its loss from the uninterrupted run's), in the order of training."""
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


def draw(facts: Facts, path: Path) -> None:
    """Draw the curves as PNG, without a display; some run must have been interrupted."""
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
            _name_curves(of=axes[0][column], below=axes[1][column])
        farthest = max((value for rows in apart.values() for _, value in rows), default=0.0)
        _mark_limit(axes[1], facts["tolerance"], farthest=farthest)
        axes[0][0].set_ylabel("loss, nats per token")
        axes[1][0].set_ylabel("difference of the losses")
        figure.suptitle(f"Killed and resumed, over the run that nobody interrupted (seed {facts['seed']})")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _draw_losses(axes: Axes, run: Facts, reference: Facts) -> None:
    axes.set_title(run["id"], fontsize=10)
    axes.plot(*_curve(reference["losses"]), color="#c9ced6", linewidth=7, label="uninterrupted")
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
        axes.plot(*_curve(again), "o", color="#b03060", markersize=9, fillstyle="none", label="trained again")
    axes.grid(axis="y", alpha=0.25)


def _name_curves(*, of: Axes, below: Axes) -> None:
    """Name the curves outside of both plots: a schedule leaves no corner free for sure."""
    names = of.get_legend_handles_labels()
    below.legend(*names, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.35), frameon=False)


def _mark_kill(axes: Axes, attempt: Facts, color: str) -> None:
    if attempt["signal"] is None or attempt["last_step"] is None:
        return
    axes.axvline(attempt["last_step"] + 0.5, color=color, linestyle=":", linewidth=1)
    axes.annotate(
        attempt["signal"].partition(":")[2],  # as --kill-at names it
        (attempt["last_step"] + 0.5, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(3, 0),
        textcoords="offset points",
        rotation=90,
        verticalalignment="top",
        fontsize=8,
        color=color,
    )


def _draw_differences(axes: Axes, rows: Sequence[Loss]) -> None:
    equal = [step for step, apart in rows if not apart]
    apart = [(step, apart) for step, apart in rows if apart]
    axes.set_yscale("log")
    axes.plot(equal, [_NO_DIFFERENCE] * len(equal), "|", color="#2e8b57")
    axes.plot([step for step, _ in apart], [value for _, value in apart], ".", color="#b03060")
    axes.set_xlabel("step")


def _mark_limit(row: Iterable[Axes], limit: float, *, farthest: float) -> None:
    """Mark the limit in every picture, on one scale that leaves no point out."""
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
