"""Checks what the demo must have shown, from its facts alone."""

from collections.abc import Iterable, Sequence
from typing import Any

from trainmaster_client.report import Report

TOLERANCE = 1e-6
"""Largest difference between a loss of the resumed run and of the uninterrupted one."""

STORY = (
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


def check(report: Report, *, capacity: int) -> None:
    facts = report.facts
    steps = [(step["job"][:4], step["to"]) for step in facts["transitions"]]
    report.check("order", expected=[list(step) for step in STORY], actual=followed(STORY, steps))
    ends = {job: [to for name, to in steps if name == job][-1] for job in sorted({name for name, _ in steps})}
    report.check("ends", expected=dict.fromkeys(("job1", "job2", "job3", "job4"), "completed"), actual=ends)
    report.check("capacity", expected=capacity, actual=facts["most_at_once"])
    second = _second_attempt(facts["attempts"])
    resumed = second["resumed_from"] or {}
    report.check("resumed-at", expected=resumed.get("step", 0) + 1, actual=second["first_step"])
    report.check("resumed-from", expected=resumed.get("sha256"), actual=resumed.get("sha256_read"))
    _check_losses(report, second)
    _check_steps_lost(report)


def followed(story: Sequence[tuple[str, str]], steps: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Return how far the story can be read off the steps, in order."""
    matched: list[list[str]] = []
    rest = iter(steps)
    for wanted in story:
        if wanted not in rest:
            break
        matched.append(list(wanted))
    return matched


def _second_attempt(attempts: list[dict[str, Any]]) -> dict[str, Any]:
    none: dict[str, Any] = {"resumed_from": None, "first_step": None, "losses": []}
    return next(
        (attempt for attempt in attempts if attempt["job"].startswith("job1") and attempt["attempt"] == 1),
        none,
    )


def _check_steps_lost(report: Report) -> None:
    """Check the steps lost: a job that hears SIGTERM loses none, another those since its last checkpoint."""
    script = report.facts["script_mode"]
    report.check("steps-lost", expected=0, actual=report.facts["steps_lost"])
    report.check(
        "script-mode-steps-lost",
        expected=f"at most {script['interval']}, the steps between checkpoints",
        actual=script["steps_lost"],
        ok=script["steps_lost"] is not None and 0 <= script["steps_lost"] <= script["interval"],
    )


def _check_losses(report: Report, second: dict[str, Any]) -> None:
    """Check that weights came back, not only a counter."""
    reference = dict(report.facts["reference"]["losses"])
    differences = [abs(loss - reference.get(step, float("inf"))) for step, loss in second["losses"]]
    worst = max(differences, default=None)
    report.check(
        "same-losses",
        expected=f"every loss within {TOLERANCE} of the uninterrupted run",
        actual=f"{len(differences)} losses, largest difference {worst}",
        ok=worst is not None and worst <= TOLERANCE,
    )
