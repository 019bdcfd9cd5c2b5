"""Checks what the demo must have shown of each script, computed from its facts alone."""

from typing import Any

from trainmaster_client.report import Report

from demos.scripts.jobs import EVALUATE_EVERY, SAMPLES, STOPPED_IN, Script
from demos.scripts.printed import not_seen_once

Document = dict[str, Any]

TOLERANCE = 1e-4
"""Losses on other ranks may differ by this part of themselves: sums are taken in another order."""


def check(report: Report, *, steps: int) -> None:
    """Check each script, and add ``steps_lost`` to its facts."""
    for script in report.facts["scripts"]:
        script["steps_lost"] = steps_lost(script["attempts"])
        _check_resumed(report, script)
        _check_same_losses(report, script, steps)


def check_case(report: Report, script: Script, facts: Document) -> None:
    """Check one case.

    Add ``steps_lost``, ``different``, ``largest_difference`` and ``not_seen_once`` to its facts.
    """
    facts["steps_lost"] = steps_lost(facts["attempts"])
    facts["different"], facts["largest_difference"] = _differences(facts)
    facts["not_seen_once"] = None
    case = script.case
    if script.library.name in case.refused_by:
        _check_refused(report, facts)
        return
    _check_resumed(report, facts)
    if case.hosts > 1:
        _check_close_losses(report, facts, case.steps)
    else:
        _check_same_losses(report, facts, case.steps)
    if not case.is_example:
        _check_samples(report, facts)
    if "EVALUATE_EVERY" in case.settings:
        _check_evaluations(report, facts, case.steps)


def steps_lost(attempts: list[Document]) -> int | None:
    """Count the steps trained before the preemption and again after it.

    None if there are not two attempts that trained.
    """
    trained = [attempt["losses"] for attempt in attempts if attempt["losses"]]
    if len(trained) < 2:  # noqa: PLR2004  before and after
        return None
    return int(trained[0][-1][0]) + 1 - int(trained[1][0][0])


def _check_resumed(report: Report, script: Document) -> None:
    _check_ends(report, script, [["Stopped", 143], ["Completed", 0]])
    lost = script["steps_lost"]
    report.check(
        f"{script['script']}-steps-lost",
        expected="at most the step in flight",
        actual="it did not resume" if lost is None else f"{lost} steps",
        ok=lost in {0, 1},
    )


def _check_ends(report: Report, script: Document, expected: list[list[Any]]) -> None:
    ends = [[attempt["status"], attempt["exit_code"]] for attempt in script["attempts"]]
    report.check(f"{script['script']}-ends", expected=expected, actual=ends)


def _check_same_losses(report: Report, script: Document, steps: int) -> None:
    losses = dict(loss for attempt in script["attempts"] for loss in attempt["losses"])
    alone = dict(script["undisturbed"])
    different = [step for step in alone if losses.get(step) != alone[step]]
    report.check(
        f"{script['script']}-same-losses",
        expected=f"{steps} losses, each as without the preemption to the last digit",
        actual=f"{len(losses)} losses, {len(different)} of {len(alone)} differ",
        ok=len(alone) == len(losses) == steps and not different,
    )


def _check_close_losses(report: Report, script: Document, steps: int) -> None:
    losses = dict(loss for attempt in script["attempts"] for loss in attempt["losses"])
    largest = script["largest_difference"]
    report.check(
        f"{script['script']}-close-losses",
        expected=f"{steps} losses, each as on 2 ranks but for the order of summation ({TOLERANCE:.0e} of it)",
        actual=f"{len(losses)} losses, the largest difference is {largest:.0e} of one",
        ok=len(losses) == len(script["undisturbed"]) == steps and largest <= TOLERANCE,
    )


def _check_samples(report: Report, script: Document) -> None:
    wrong = not_seen_once([attempt["samples"] for attempt in script["attempts"]], samples=SAMPLES)
    script["not_seen_once"] = len(wrong)
    last = script["attempts"][0]["losses"][-1:]
    report.check(
        f"{script['script']}-samples",
        expected=f"{SAMPLES} samples, each once an epoch, over a stop in step {STOPPED_IN}",
        actual=f"{len(wrong)} of {SAMPLES} not once, over a stop in step {last[0][0] if last else 'none'}",
        ok=not wrong and bool(last) and int(last[0][0]) == STOPPED_IN,
    )


def _check_evaluations(report: Report, script: Document, steps: int) -> None:
    """Check that each evaluation is made once, and the one of the stop by the second attempt."""
    first, second = ([*attempt["evaluations"]] for attempt in script["attempts"])
    due = list(range(EVALUATE_EVERY, steps + 1, EVALUATE_EVERY))
    made = [int(evaluation[0]) for evaluation in first + second]
    made_up = [int(evaluation[0]) for evaluation in second[:1]]
    report.check(
        f"{script['script']}-evaluations",
        expected=f"after steps {due}, that of step {STOPPED_IN} made up, each as without the preemption",
        actual=f"after steps {made}, that of step {made_up} made up",
        ok=made == due and made_up == [STOPPED_IN] and first + second == script["undisturbed_evaluations"],
    )


def _check_refused(report: Report, script: Document) -> None:
    _check_ends(report, script, [["Stopped", 143], ["Failed", 1]])
    trained_again = [attempt["losses"] for attempt in script["attempts"][1:] if attempt["losses"]]
    report.check(
        f"{script['script']}-refused",
        expected="refused in words before its first step",
        actual=script["refused"] or "not refused",
        ok=bool(script["refused"]) and not trained_again,
    )


def _differences(script: Document) -> tuple[int, float]:
    """Count the losses that differ from the undisturbed ones; the largest difference as part of a loss."""
    losses = [loss for attempt in script["attempts"] for loss in attempt["losses"]]
    alone = dict(script["undisturbed"])
    pairs = [(text, alone[step]) for step, text in losses if step in alone]
    parts = [abs(float(text) - float(other)) / abs(float(other)) for text, other in pairs]
    return sum(text != other for text, other in pairs), max(parts, default=0.0)
