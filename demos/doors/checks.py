"""Checks what the demo must have shown of each door, from its facts alone."""

from collections.abc import Iterable
from typing import Any

from trainmaster_client.report import Report

from demos.doors.waiting_jobs import STEPS

Document = dict[str, Any]

COURSE = (
    ("InProgress", "Pending"),
    ("InProgress", "Training"),
    ("InProgress", "Pending"),
    ("InProgress", "Training"),
    ("Completed", "Completed"),
)
"""Statuses that a client must have seen in this order; others in between were in progress."""
_RESUMED = "resumed from step="


def check(report: Report) -> None:
    for door in report.facts["doors"]:
        _check_door(report, door)
    created = report.facts["created"]
    others = sorted({str(record["by"]) for record in created if not str(record["by"]).endswith("/schedule")})
    report.check("started-by-schedule-alone", expected=[], actual=others, ok=bool(created) and not others)


def _check_door(report: Report, door: Document) -> None:
    name = door["door"]
    report.check(f"{name}-ends-well", expected=0, actual=door["exit_code"])
    attempts = [attempt["status"] for attempt in door["attempts"]]
    report.check(f"{name}-attempts", expected=["Stopped", "Completed"], actual=attempts)
    seen = [tuple(status) for status in door["statuses"]]
    report.check(
        f"{name}-sees-it-wait-resume-and-complete",
        expected=" ".join("/".join(pair) for pair in COURSE),
        actual=" ".join("/".join(pair) for pair in seen),
        ok=_in_order(COURSE, seen) and {status for status, _ in seen[:-1]} == {"InProgress"},
    )
    by = [str(record["by"]).rpartition("/")[2] for record in door["created"]]
    report.check(f"{name}-started-by-schedule", expected=["schedule"] * len(attempts), actual=by)
    lines = door["log_lines"]
    begun = next((line for line in lines if line.startswith(_RESUMED)), f"{_RESUMED}0")
    step = int(begun.removeprefix(_RESUMED))
    report.check(f"{name}-resumed", expected="after its checkpoint", actual=f"after step {step}", ok=step > 0)
    printed = {line for line in lines if line.startswith("step=")}
    last = max((int(line.removeprefix("step=")) for line in printed), default=0)
    report.check(
        f"{name}-log",
        expected=f"steps 1 to {step + STEPS} or later, none missing",
        actual=f"{len(printed)} steps, the last is {last}",
        ok=last >= step + STEPS and printed == {f"step={number}" for number in range(1, last + 1)},
    )


def _in_order(wanted: Iterable[tuple[str, str]], seen: Iterable[tuple[Any, ...]]) -> bool:
    rest = iter(seen)
    return all(pair in rest for pair in wanted)
