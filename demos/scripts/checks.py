"""What the demo must have shown of each script, computed from its facts alone."""

from typing import Any

from trainmaster_client.report import Report

Document = dict[str, Any]


def check(report: Report, *, steps: int) -> None:
    """Adds ``steps_lost`` to the facts of each script."""
    for script in report.facts["scripts"]:
        script["steps_lost"] = steps_lost(script["attempts"])
        _check_script(report, script, steps)


def steps_lost(attempts: list[Document]) -> int | None:
    """Trained before the preemption and again after it; None: there are not two attempts that trained."""
    trained = [one["losses"] for one in attempts if one["losses"]]
    if len(trained) < 2:  # noqa: PLR2004  before and after
        return None
    return int(trained[0][-1][0]) + 1 - int(trained[1][0][0])


def _check_script(report: Report, script: Document, steps: int) -> None:
    name, attempts = script["script"], script["attempts"]
    ends = [[one["status"], one["exit_code"]] for one in attempts]
    report.check(f"{name}-ends", expected=[["Stopped", 143], ["Completed", 0]], actual=ends)
    lost = script["steps_lost"]
    report.check(
        f"{name}-steps-lost",
        expected="at most the step in flight",
        actual="it did not resume" if lost is None else f"{lost} steps",
        ok=lost in {0, 1},
    )
    losses = dict(loss for one in attempts for loss in one["losses"])
    alone = dict(script["undisturbed"])
    different = [step for step in alone if losses.get(step) != alone[step]]
    report.check(
        f"{name}-same-losses",
        expected=f"{steps} losses, each as without the preemption to the last digit",
        actual=f"{len(losses)} losses, {len(different)} of {len(alone)} differ",
        ok=len(alone) == len(losses) == steps and not different,
    )
