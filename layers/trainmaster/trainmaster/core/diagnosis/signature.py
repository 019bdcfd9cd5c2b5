"""What a signature of a failure is: a pattern of one line, and what it says about the training job."""

import re
from dataclasses import dataclass
from enum import IntEnum

from trainmaster.core.jobs.failures import FailureClass


class Certainty(IntEnum):
    """How much a line says about the cause. The lowest decides; among equals the line that came first."""

    CODE = 0
    """SageMaker's own word in the failure reason."""
    CAUSE = 1
    """Nothing else makes a line like this."""
    EXCEPTION = 2
    """The program's own exception."""
    SIGNAL = 3
    """A process was killed or crashed; often what started it all, seldom why."""
    CONSEQUENCE = 4
    """Often follows from what another host or process died of."""
    HINT = 5
    """A warning, or the word of who was asked to stop: nothing that must have ended it."""
    EXIT = 6
    """It failed, and that is all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    pattern: re.Pattern[str]
    failure_class: FailureClass
    certainty: Certainty
    source: str
    """Where such a line is explained or was seen: a public URL."""
    advice: str | None = None
    """None: the advice of its class."""


def signature(
    failure_class: FailureClass, certainty: Certainty, pattern: str, source: str, advice: str | None = None
) -> Signature:
    """Case does not matter. Repetitions in the pattern are bounded: lines are user-controlled text."""
    return Signature(
        pattern=re.compile(pattern, re.IGNORECASE),
        failure_class=failure_class,
        certainty=certainty,
        source=source,
        advice=advice,
    )
