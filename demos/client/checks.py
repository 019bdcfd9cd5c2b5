"""Checks what the demo must have shown of each door, from its facts alone."""

from typing import Any

from trainmaster_client.report import Report

from demos.client.doors.settings import STEPS
from demos.client.evidence import steps

Document = dict[str, Any]


def check(report: Report) -> None:
    for door in report.facts["doors"]:
        _check_door(report, door)
    _check_starters(report)


def _check_door(report: Report, door: Document) -> None:
    name = door["door"]
    report.check(f"{name}-ends-well", expected=0, actual=door["exit_code"])
    statuses = [attempt["status"] for attempt in door["attempts"]]
    report.check(f"{name}-attempts", expected=["Stopped", "Completed"], actual=statuses)
    resumed = (door["resumed_from"] or {}).get("step")
    report.check(f"{name}-resumed", expected="after step 0", actual=f"after step {resumed}", ok=bool(resumed))
    shown, written = steps(door["log_lines"]), steps(door["log_lines_written"])
    report.check(
        f"{name}-log-lines",
        expected=f"the {len(written)} lines of both attempts, each once and in order",
        actual=f"{len(shown)} lines, the last of step {max(shown, default=None)}",
        ok=shown == written and STEPS in shown,
    )
    last = door["attempts"][-1]["training_job_name"]
    report.check(
        f"{name}-model-artifacts",
        expected=f"those of {last}",
        actual=door["model_artifacts"],
        ok=f"/{last}/" in str(door["model_artifacts"]),
    )
    _check_statuses(report, door)


def _check_statuses(report: Report, door: Document) -> None:
    """Check that the status is InProgress until the end, with a second wait in between."""
    seen = [tuple(status) for status in door["describe_statuses"]]
    report.check(
        f"{door['door']}-statuses",
        expected="InProgress throughout, Pending again after Training, at last Completed",
        actual=" ".join(f"{status}/{secondary}" for status, secondary in seen),
        ok=bool(seen)
        and {status for status, _ in seen[:-1]} == {"InProgress"}
        and seen[-1] == ("Completed", "Completed")
        and _in_order(
            [("InProgress", "Training"), ("InProgress", "Pending"), ("InProgress", "Training")], seen
        ),
    )


def _in_order(wanted: list[tuple[str, str]], seen: list[tuple[Any, ...]]) -> bool:
    rest = iter(seen)
    return all(pair in rest for pair in wanted)


def _check_starters(report: Report) -> None:
    """Check that only the function ``schedule`` started or stopped anything."""
    started = [record for record in report.facts["journal"] if record["service"] == "sagemaker"]
    others = sorted(
        {str(record["principal"]) for record in started if not str(record["principal"]).endswith("/schedule")}
    )
    report.check("started-by-schedule-alone", expected=[], actual=others, ok=bool(started) and not others)
