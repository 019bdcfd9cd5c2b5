"""Checks a training that was preempted and resumed: its ends, losses, samples, evaluations.

Everything here is computed from the facts of one script: its attempts, and the run that nothing disturbed.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from trainmaster_client.report import Report

from demos.stage.evidence import Document
from demos.stage.printed import not_seen_once

TOLERANCE = 1e-4
"""Losses on other ranks may differ by this part of themselves: sums are taken in another order."""
_SIGTERM_EXIT = 143


def steps_lost(attempts: Iterable[Document]) -> int | None:
    """Count the steps trained before the preemption and again after it.

    None if there are not two attempts that trained.
    """
    trained = [attempt["losses"] for attempt in attempts if attempt["losses"]]
    if len(trained) < 2:  # noqa: PLR2004  before and after
        return None
    return int(trained[0][-1][0]) + 1 - int(trained[1][0][0])


def check_resumed(report: Report, script: Document) -> None:
    """Check that a training was stopped by SIGTERM and completed, and lost at most the step in flight."""
    _check_ends(report, script, [["Stopped", _SIGTERM_EXIT], ["Completed", 0]])
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


def check_same_losses(report: Report, script: Document, steps: int) -> None:
    """Check that the losses of all attempts together are those of the undisturbed run, digit by digit."""
    losses = dict(loss for attempt in script["attempts"] for loss in attempt["losses"])
    alone = dict(script["undisturbed"])
    different = [step for step in alone if losses.get(step) != alone[step]]
    report.check(
        f"{script['script']}-same-losses",
        expected=f"{steps} losses, each as without the preemption to the last digit",
        actual=f"{len(losses)} losses, {len(different)} of {len(alone)} differ",
        ok=len(alone) == len(losses) == steps and not different,
    )


def check_close_losses(report: Report, script: Document, steps: int) -> None:
    """Check the losses of a training that resumed on another number of ranks."""
    losses = dict(loss for attempt in script["attempts"] for loss in attempt["losses"])
    largest = script["largest_difference"]
    report.check(
        f"{script['script']}-close-losses",
        expected=f"{steps} losses, each as on 2 ranks but for the order of summation ({TOLERANCE:.0e} of it)",
        actual=f"{len(losses)} losses, the largest difference is {largest:.0e} of one",
        ok=len(losses) == len(script["undisturbed"]) == steps and largest <= TOLERANCE,
    )


def check_samples(report: Report, script: Document, *, samples: int, stopped_in: int) -> None:
    """Check that each epoch saw each sample once, and add ``not_seen_once`` to the facts."""
    wrong = not_seen_once([attempt["samples"] for attempt in script["attempts"]], samples=samples)
    script["not_seen_once"] = len(wrong)
    last = script["attempts"][0]["losses"][-1:]
    report.check(
        f"{script['script']}-samples",
        expected=f"{samples} samples, each once an epoch, over a stop in step {stopped_in}",
        actual=f"{len(wrong)} of {samples} not once, over a stop in step {last[0][0] if last else 'none'}",
        ok=not wrong and bool(last) and int(last[0][0]) == stopped_in,
    )


def check_evaluations(report: Report, script: Document, *, due: Sequence[int], stopped_in: int) -> None:
    """Check that each evaluation is made once, and the one of the stop by the second attempt."""
    first, second = ([*attempt["evaluations"]] for attempt in script["attempts"])
    made = [int(evaluation[0]) for evaluation in first + second]
    made_up = [int(evaluation[0]) for evaluation in second[:1]]
    is_whole = (made, made_up) == (list(due), [stopped_in])
    stop = f"that of step {stopped_in} made up, each as without the preemption"
    report.check(
        f"{script['script']}-evaluations",
        expected=f"after steps {list(due)}, {stop}",
        actual=f"after steps {made}, that of step {made_up} made up",
        ok=is_whole and first + second == script["undisturbed_evaluations"],
    )


def check_refused(report: Report, script: Document) -> None:
    """Check that the second attempt refused in words, before its first step."""
    _check_ends(report, script, [["Stopped", _SIGTERM_EXIT], ["Failed", 1]])
    trained_again = [attempt["losses"] for attempt in script["attempts"][1:] if attempt["losses"]]
    report.check(
        f"{script['script']}-refused",
        expected="refused in words before its first step",
        actual=script["refused"] or "not refused",
        ok=bool(script["refused"]) and not trained_again,
    )


def differences(script: Document) -> tuple[int, float]:
    """Count the losses that differ from the undisturbed ones; the largest difference as part of a loss."""
    losses = [loss for attempt in script["attempts"] for loss in attempt["losses"]]
    alone = dict(script["undisturbed"])
    pairs = [(text, alone[step]) for step, text in losses if step in alone]
    parts = [abs(float(text) - float(other)) / abs(float(other)) for text, other in pairs]
    return sum(text != other for text, other in pairs), max(parts, default=0.0)
