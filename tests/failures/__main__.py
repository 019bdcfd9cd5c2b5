"""``python -m tests.failures [--messages FILE] [--json P]``: how well failures are told apart."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.core.diagnosis import diagnose
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.policy.governance import Recovery
from trainmaster_client.report import Report

from tests.failures.messages import OWN, BadMessageError, Message, read_messages

LEAST_MESSAGES = 80
LEAST_ACCURACY = 0.9
LEAST_ACCURACY_HELD_OUT = 0.8
RETRIED = Recovery().retry_classes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    message: Message
    diagnosis: Diagnosis

    @property
    def is_right(self) -> bool:
        return self.diagnosis.failure_class is self.message.failure_class

    @property
    def retries_user_code(self) -> bool:
        """The dear mistake: instances are paid for again to fail again."""
        return (
            self.message.failure_class is FailureClass.USER_CODE and self.diagnosis.failure_class in RETRIED
        )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.failures", description=__doc__)
    parser.add_argument(
        "--messages", type=Path, default=OWN, help="JSON lines; the project's own if not given"
    )
    parser.add_argument(
        "--json", type=Path, default=Path("build/failures.json"), help="where to write the report"
    )
    arguments = parser.parse_args(argv)
    try:
        messages = read_messages(arguments.messages)
    except (OSError, BadMessageError) as error:
        parser.error(f"{arguments.messages}: {error}")
    scored = [Scored(message=message, diagnosis=diagnose(message.traces)) for message in messages]
    print(confusion_table(scored))
    report = Report("failures", argv=("python", "-m", "tests.failures", *argv))
    _note(scored, report, least=LEAST_MESSAGES if arguments.messages == OWN else 1)
    return report.finish(arguments.json)


def _note(scored: Sequence[Scored], report: Report, *, least: int) -> None:
    report.check("messages", expected=f"at least {least}", actual=len(scored), ok=len(scored) >= least)
    _note_accuracy("accuracy", scored, LEAST_ACCURACY, report)
    held_out = [one for one in scored if one.message.held_out]
    _note_accuracy("accuracy-held-out", held_out, LEAST_ACCURACY_HELD_OUT, report)
    retried = sum(one.retries_user_code for one in scored)
    of = sum(one.message.failure_class is FailureClass.USER_CODE for one in scored)
    report.check(
        "user-code-not-retried", expected="0 retried", actual=f"{retried} of {of} retried", ok=retried == 0
    )
    report.facts["retry_classes"] = sorted(RETRIED)
    report.facts["first_sight"] = first_sight(one.message for one in scored)
    report.facts["messages"] = [_fact(one) for one in scored]


def _note_accuracy(name: str, scored: Sequence[Scored], least: float, report: Report) -> None:
    if not scored:
        report.skip(name, reason="the list has no such messages", expected=f"at least {least}")
        return
    right = sum(one.is_right for one in scored)
    share = right / len(scored)
    actual = f"{share:.3f} ({right} of {len(scored)})"
    report.check(name, expected=f"at least {least}", actual=actual, ok=share >= least)


def _fact(one: Scored) -> dict[str, object]:
    traces, diagnosis = one.message.traces, one.diagnosis
    return {
        "reason": traces.failure_reason,
        "exit_code": traces.exit_code,
        "log_tail": list(traces.log_tail),
        "class": one.message.failure_class,
        "found": diagnosis.failure_class,
        "evidence": diagnosis.evidence,
        "held_out": one.message.held_out,
        "list": one.message.collection,
        "first_sight": one.message.first_sight,
        "seen": one.message.seen,
    }


def first_sight(messages: Iterable[Message]) -> dict[str, dict[str, int]]:
    """For each list what was told right before anybody had seen it: as recorded, whatever is told today."""
    seen = [one for one in messages if one.collection is not None and one.first_sight is not None]
    total = Counter(str(one.collection) for one in seen)
    right = Counter(str(one.collection) for one in seen if one.first_sight is one.failure_class)
    return {name: {"messages": count, "right": right[name]} for name, count in sorted(total.items())}


def confusion_table(scored: Iterable[Scored]) -> str:
    """A row for each class, a column for what was found; empty columns are left out."""
    counts = Counter((one.message.failure_class, one.diagnosis.failure_class) for one in scored)
    columns = [one for one in FailureClass if any(found is one for _, found in counts)]
    rows = [one for one in FailureClass if any(wanted is one for wanted, _ in counts)]
    lines = ["class \\ found".ljust(14) + "".join(column.rjust(13) for column in columns)]
    for row in rows:
        cells = (str(counts[row, column] or ".").rjust(13) for column in columns)
        lines.append(row.ljust(14) + "".join(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
