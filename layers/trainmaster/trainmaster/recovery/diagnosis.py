"""From traces to a class: the first signature that matches, the more certain traces before the others."""

from dataclasses import dataclass

from trainmaster.failure_classes import Diagnosis, FailureClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What a failed training job left behind."""

    failure_reason: str | None = None
    """FailureReason of DescribeTrainingJob."""
    exit_code: int | None = None
    log_tail: tuple[str, ...] = ()
    """Last lines of its hosts' logs, the oldest first; empty where they could not be read."""


def diagnose(traces: Traces) -> Diagnosis:
    """Never fails: what matches nothing is of class unknown."""
    return Diagnosis(failure_class=FailureClass.UNKNOWN, advice=f"read its log: {traces.failure_reason}")
