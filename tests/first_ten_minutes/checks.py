"""What a beginning must cost at most, from its facts alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster_client.report import Report

from tests.first_ten_minutes.machine import why_not_quiet

TARGET_SECONDS = 180.0
"""From an empty folder to the end of the first fit(), on a quiet machine with two cores."""
MB = 1_000_000
LIMITS: Mapping[str, Mapping[str, float]] = {
    "checkout": {"cpu_seconds": 180, "fetched_bytes": 600 * MB, "written_bytes": 2000 * MB},
    "wheel": {"cpu_seconds": 120, "fetched_bytes": 300 * MB, "written_bytes": 900 * MB},
}
"""What does not depend on who else is at work: a package too many shows here on any machine."""


def check(report: Report, way: str) -> None:
    """Judge one way to begin, whose facts are under its name."""
    facts: Mapping[str, Any] = report.facts[way]
    _check_job(report, way, facts)
    for quantity, most in LIMITS[way].items():
        actual = total(facts, quantity)
        report.check(f"{way}-{quantity}", expected={"at most": most}, actual=actual, ok=actual <= most)
    _check_time(report, way, facts, report.facts["machine"])


def total(facts: Mapping[str, Any], quantity: str) -> float:
    """The sum over the steps, and of CPU seconds also what the twin used, which ended after them."""
    after: float = facts["cpu_seconds_of_the_twin"] if quantity == "cpu_seconds" else 0
    in_steps: float = sum(step[quantity] for step in facts["steps"])
    return round(after + in_steps, 2)


def _check_job(report: Report, way: str, facts: Mapping[str, Any]) -> None:
    afterwards: Sequence[Mapping[str, str]] = facts["afterwards"]
    report.check(f"{way}-completed", expected=["completed"], actual=[one["state"] for one in afterwards])
    in_queue = sorted({one["name"] for jobs in facts["queues"] for one in jobs})
    names = [one["name"] for one in afterwards]
    report.check(f"{way}-seen-in-queue", expected=names, actual=in_queue)
    shown = [name for name in names if any(name in line for line in facts["fit"])]
    report.check(f"{way}-shown-by-fit", expected=names, actual=shown)


def _check_time(report: Report, way: str, facts: Mapping[str, Any], machine: Mapping[str, Any]) -> None:
    found = why_not_quiet(load=machine["load"], others=facts["others_share"], cores=machine["cores"])
    name, expected = f"{way}-seconds", {"at most": TARGET_SECONDS}
    if found is not None:
        report.skip(name, reason=f"{found}; {total(facts, 'seconds')} s here", expected=expected)
        return
    seconds = total(facts, "seconds")
    report.check(name, expected=expected, actual=seconds, ok=seconds <= TARGET_SECONDS)
