"""The runs of a proof as a table."""

from typing import Any

Facts = dict[str, Any]

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
