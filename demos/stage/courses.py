"""Checks that hold for any demo: a course is followed, jobs take turns, one function starts jobs.

Everything here is computed from the facts of a report alone.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from trainmaster_client.report import Report

Document = dict[str, Any]
Step = TypeVar("Step")

FOUR_JOBS = (
    ("job1", "running"),
    ("job2", "running"),
    ("job1", "preempting"),
    ("job1", "preempted"),
    ("job4", "running"),
    ("job2", "completed"),
    ("job1", "running"),
    ("job4", "completed"),
    ("job3", "running"),
)
"""The four-job example; what is not in it may happen in between."""
_SCHEDULE = "/schedule"


def followed(course: Sequence[Step], steps: Iterable[Step]) -> list[Step]:
    """Return how far the course can be read off the steps, in order."""
    rest = iter(steps)
    matched: list[Step] = []
    for wanted in course:
        if wanted not in rest:
            break
        matched.append(wanted)
    return matched


def has_followed(course: Sequence[Step], steps: Iterable[Step]) -> bool:
    """Tell whether the whole course is among the steps, in order."""
    return len(followed(course, steps)) == len(course)


def check_four_jobs(
    report: Report, steps: Sequence[tuple[str, str]], *, course: Sequence[tuple[str, str]] = FOUR_JOBS
) -> None:
    """Check ``order`` and ``ends`` of the four-job example; ``steps`` are (job, state)."""
    order = [list(step) for step in followed(course, steps)]
    report.check("order", expected=[list(step) for step in course], actual=order)
    ends = {job: [to for name, to in steps if name == job][-1] for job in sorted({name for name, _ in steps})}
    report.check("ends", expected=dict.fromkeys(("job1", "job2", "job3", "job4"), "completed"), actual=ends)


def most_at_once(journal: Iterable[Document]) -> int:
    """Return the most training containers alive at one instant, from the process events."""
    alive: set[int] = set()
    most = 0
    for record in journal:
        if record["kind"] == "process" and record["event"] == "start":
            alive.add(record["pid"])
            most = max(most, len(alive))
        if record["kind"] == "process" and record["event"] == "exit":
            alive.discard(record["pid"])
    return most


def check_started_by_schedule(report: Report, principals: Iterable[str]) -> None:
    """Check that nothing but the function ``schedule`` started or stopped a job, and that it did."""
    callers = list(principals)
    others = sorted({caller for caller in callers if not caller.endswith(_SCHEDULE)})
    report.check("started-by-schedule-alone", expected=[], actual=others, ok=bool(callers) and not others)
