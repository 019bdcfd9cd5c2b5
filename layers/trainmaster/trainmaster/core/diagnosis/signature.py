"""Signature of a failure: a pattern of one line, and what such a line tells about the training job."""

import re
from dataclasses import dataclass
from enum import IntEnum

from trainmaster.core.jobs.failures import FailureClass


class Certainty(IntEnum):
    """Certainty of a line about the cause: the lowest value decides, of equals the first line."""

    CODE = 0
    """SageMaker's own code in the failure reason."""
    CAUSE = 1
    """Only this cause makes a line like this."""
    EXCEPTION = 2
    """The program's own exception."""
    SIGNAL = 3
    """A process was killed or crashed: often the first event of a failure, seldom its cause."""
    CONSEQUENCE = 4
    """A line that often follows from the death of another host or process."""
    HINT = 5
    """A warning, or a process that was asked to stop: it need not have ended the training job."""
    EXIT = 6
    """Nothing is known but that it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    pattern: re.Pattern[str]
    failure_class: FailureClass
    certainty: Certainty
    source: str
    """Public URL where such a line is explained or was seen."""
    advice: str | None = None
    """Advice for the owner; None: that of the failure class."""


def signature(
    failure_class: FailureClass, certainty: Certainty, pattern: str, source: str, advice: str | None = None
) -> Signature:
    """Build a signature, whose pattern ignores case.

    Repetitions in the pattern must be bounded, as the lines are text that users control.

    Args:
        failure_class: Class of the failure that such a line shows.
        certainty: How certain the line makes that class.
        pattern: Regular expression of one line.
        source: Public URL where such a line is explained or was seen.
        advice: Advice for the owner; None: that of the class.
    """
    return Signature(
        pattern=re.compile(pattern, re.IGNORECASE),
        failure_class=failure_class,
        certainty=certainty,
        source=source,
        advice=advice,
    )
