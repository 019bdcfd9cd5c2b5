"""From traces to a class: the most certain line decides; among equally certain ones the first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.failure_classes import Diagnosis, FailureClass
from trainmaster.recovery.advice import ADVICE
from trainmaster.recovery.evidence import evidence_of, readable
from trainmaster.recovery.exit_codes import EXITS, OTHER_EXIT, exit_code_in
from trainmaster.recovery.signature import Certainty, Signature
from trainmaster.recovery.signatures import SIGNATURES

MAX_LINES = 400
"""Looked at from the end; of the failure reason from its beginning."""
# Lines that name a failure without being one.
_NOISE = re.compile(r"NCCL INFO|caller indicates that this is not a failure", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traces:
    """What a failed training job left behind."""

    failure_reason: str | None = None
    """FailureReason of DescribeTrainingJob."""
    exit_code: int | None = None
    log_tail: tuple[str, ...] = ()
    """Last lines of its hosts' logs, the oldest first; empty where they could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Finding:
    failure_class: FailureClass
    certainty: Certainty
    advice: str | None
    evidence: str


def diagnose(traces: Traces) -> Diagnosis:
    """Never fails: what matches nothing is of class unknown.

    When one rank dies of something, the others lose it. So what hosts say of the network counts only where no
    line and no exit code tells of a cause.
    """
    exit_code = traces.exit_code if traces.exit_code is not None else exit_code_in(traces.failure_reason)
    best = min(_findings(traces, exit_code), key=lambda finding: finding.certainty, default=None)
    if best is None:
        return Diagnosis(
            failure_class=FailureClass.UNKNOWN, advice=ADVICE[FailureClass.UNKNOWN], exit_code=exit_code
        )
    return Diagnosis(
        failure_class=best.failure_class,
        advice=best.advice or ADVICE[best.failure_class],
        evidence=best.evidence,
        exit_code=exit_code,
    )


def _findings(traces: Traces, exit_code: int | None) -> Iterator[_Finding]:
    """In the order of trust: of equally certain ones the first counts."""
    for line in (traces.failure_reason or "").splitlines()[:MAX_LINES]:
        yield from _found_in(line, SIGNATURES)
    if exit_code:
        yield _exit(exit_code)
    for line in dict.fromkeys(traces.log_tail[-MAX_LINES:]):  # ranks repeat each other
        yield from _found_in(line, _OF_LOGS)


def _found_in(line: str, signatures: tuple[Signature, ...]) -> Iterator[_Finding]:
    text = readable(line)
    if not text or _NOISE.search(text):
        return
    for one in signatures:
        if one.pattern.search(text):
            yield _Finding(
                failure_class=one.failure_class,
                certainty=one.certainty,
                advice=one.advice,
                evidence=evidence_of(text, one.pattern),
            )
            return


def _exit(code: int) -> _Finding:
    meaning = EXITS.get(code if code > 0 else 128 - code, OTHER_EXIT)
    return _Finding(
        failure_class=meaning.failure_class,
        certainty=meaning.certainty,
        advice=meaning.advice,
        evidence=f"exit code {code}",
    )


_OF_LOGS = tuple(one for one in SIGNATURES if one.certainty is not Certainty.CODE)
