"""From traces to a class: the most certain line decides; among equally certain ones the first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmaster.core.diagnosis.advice import ADVICE
from trainmaster.core.diagnosis.evidence import evidence_of, readable
from trainmaster.core.diagnosis.exit_codes import exit_code_in, exit_of
from trainmaster.core.diagnosis.loudness import is_noise, is_told, is_warning
from trainmaster.core.diagnosis.signature import Certainty, Signature
from trainmaster.core.diagnosis.signatures import SIGNATURES
from trainmaster.core.diagnosis.tracebacks import raised
from trainmaster.core.jobs.failures import Diagnosis, FailureClass

MAX_LINES = 400
"""Looked at from the end; of the failure reason from its beginning."""
# As SageMaker's SDK passes a failure reason on.
_PASSED_ON = re.compile(r"^.{0,80}\bError for \w{1,40} job \S{1,80}: \w{1,10}\. Reason: ", re.IGNORECASE)
# What a warning must not make of a failure: it would be tried again for something that had passed.
_TAKES_MORE_THAN_A_WARNING = (FailureClass.SERVICE, FailureClass.CAPACITY, FailureClass.NETWORK)


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
    said, *more = _PASSED_ON.sub("", traces.failure_reason or "").splitlines()[:MAX_LINES] or [""]
    yield from _found_in(said, SIGNATURES)
    for line in more:  # the program's words, as SageMaker quotes them
        yield from _found_in(line, _OF_LOGS)
    if exit_code:
        yield _exit(exit_code)
    tail = traces.log_tail[-MAX_LINES:]
    for line, exception in dict.fromkeys(zip(tail, raised(tail), strict=True)):  # ranks repeat each other
        yield from _logged(line)
        if exception is not None:
            yield from _raised(exception)


def _raised(exception: str) -> Iterator[_Finding]:
    """What ended a traceback and is known as nothing else is the program's."""
    known = next(_found_in(exception, _OF_LOGS), None)
    if known is None or known.certainty is Certainty.EXIT:
        yield _Finding(
            failure_class=FailureClass.USER_CODE,
            certainty=Certainty.EXCEPTION,
            advice=None,
            evidence=evidence_of(readable(exception), _ANYTHING),
        )


def _logged(line: str) -> Iterator[_Finding]:
    """A broken GPU is one at any level; anything else in a warning is a hint at most."""
    text = readable(line)
    for finding in _found_in(line, _OF_LOGS):
        if finding.failure_class is FailureClass.HARDWARE:
            yield finding
        elif is_told(text):
            return
        elif not is_warning(text):
            yield finding
        elif finding.failure_class not in _TAKES_MORE_THAN_A_WARNING:
            yield replace(finding, certainty=max(finding.certainty, Certainty.HINT))


def _found_in(line: str, signatures: tuple[Signature, ...]) -> Iterator[_Finding]:
    text = readable(line)
    if not text or is_noise(text):
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
    meaning = exit_of(code)
    return _Finding(
        failure_class=meaning.failure_class,
        certainty=meaning.certainty,
        advice=meaning.advice,
        evidence=f"exit code {code}",
    )


_ANYTHING = re.compile("")
_OF_LOGS = tuple(one for one in SIGNATURES if one.certainty is not Certainty.CODE)
