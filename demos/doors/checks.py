"""What the demo must have shown of each door, computed from its facts alone."""

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
"""What a client must have seen in this order; what else it saw in between was in progress."""
_RESUMED = "resumed from step="


def check(report: Report) -> None:
    for door in report.facts["doors"]:
        _check_door(report, door)
    created = report.facts["created"]
    others = sorted({str(one["by"]) for one in created if not str(one["by"]).endswith("/schedule")})
    report.check("started-by-schedule-alone", expected=[], actual=others, ok=bool(created) and not others)


def _check_door(report: Report, door: Document) -> None:
    name = door["door"]
    report.check(f"{name}-ends-well", expected=0, actual=door["exit_code"])
    attempts = [one["status"] for one in door["attempts"]]
    report.check(f"{name}-attempts", expected=["Stopped", "Completed"], actual=attempts)
    seen = [tuple(one) for one in door["statuses"]]
    report.check(
        f"{name}-sees-it-wait-resume-and-complete",
        expected=" ".join("/".join(one) for one in COURSE),
        actual=" ".join("/".join(one) for one in seen),
        ok=_in_order(COURSE, seen) and {status for status, _ in seen[:-1]} == {"InProgress"},
    )
    by = [str(one["by"]).rpartition("/")[2] for one in door["created"]]
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
        ok=last >= step + STEPS and printed == {f"step={one}" for one in range(1, last + 1)},
    )


def _in_order(wanted: Iterable[tuple[str, str]], seen: Iterable[tuple[Any, ...]]) -> bool:
    rest = iter(seen)
    return all(one in rest for one in wanted)
