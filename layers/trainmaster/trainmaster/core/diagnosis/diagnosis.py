"""Diagnose a failure: derive its class and advice from the evidence that it left.

The most certain line decides; among equally certain ones the first.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from trainmaster.core.diagnosis import signatures_environment as environment
from trainmaster.core.diagnosis import signatures_platform as platform
from trainmaster.core.diagnosis import signatures_program as program
from trainmaster.core.diagnosis import signatures_resources as resources
from trainmaster.core.diagnosis.evidence import evidence_of, readable
from trainmaster.core.diagnosis.exit_codes import exit_code_in, exit_of
from trainmaster.core.diagnosis.signature import Certainty, Signature
from trainmaster.core.jobs.failures import Diagnosis, FailureClass

SIGNATURES = (
    *platform.HANG,
    *platform.SERVICE,
    *platform.CAPACITY,
    *platform.HARDWARE,
    *resources.FILES,
    *resources.GPU_OOM,
    *resources.HOST_OOM,
    *resources.DISK_FULL,
    *environment.IMAGE,
    *platform.OTHER_HOSTS,
    *environment.DATA_ACCESS,
    *program.PARTICULAR,
    *platform.NETWORK,
    *platform.UNHANDLED_CUDA,
    *program.GENERAL,
)


# A launcher may put the rank or host before each line. What faulthandler writes of threads is no traceback.
_FRAME = re.compile(r'^(?P<before>.{0,80}?) {2}File ".{1,500}", line \d{1,7}\b(?! in )')
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Za-z_]\w{1,80}(?:: |:?\s{0,9}$)")
# Those who only pass on that another process failed.
_MESSENGERS = re.compile(
    r"(?:ChildFailed|CalledProcess|ExecuteUserScript)Error|Process(?:Raised|Exited)Exception|SignalException"
    r"|^(?:subprocess|torch\.distributed\.elastic|torch\.multiprocessing)\.|^(?:INFO|WARNING|ERROR)\b"
)
_REACH = 2000
"""Most characters of a line that are read."""


def raised(lines: Iterable[str]) -> Iterator[str | None]:
    """Yield, for each line, the exception that ends a traceback there, or None."""
    before: str | None = None
    for line in lines:
        text = line[:_REACH]
        if frame := _FRAME.match(text):
            before = frame["before"]
        elif before is not None and text.startswith(before) and _is_outside(text[len(before) :]):
            exception = text[len(before) :].strip()
            before = None
            yield exception if _EXCEPTION.match(exception) and not _MESSENGERS.search(exception) else None
            continue
        yield None


def _is_outside(text: str) -> bool:
    """Tell whether a line is neither the source line of a frame nor the marks below it."""
    return bool(text.strip()) and not text.startswith(" ")


# A program without a GPU is informed by TensorFlow at level E, in the words of a broken image or GPU.
_NOISE = re.compile(
    r"NCCL INFO|caller indicates that this is not a failure|could not load dynamic library|\bdlerror\b"
    r"|failed call to cuInit|cannot dlopen some GPU libraries|kernel driver does not appear to be running"
    r"|could not find cuda drivers|unable to register cu\w{2,10} factory|TF-TRT Warning"
    r"|\(normal if no \w{1,20} installed\)|loss scale|job control in this shell|set terminal process group"
    r"|closing signal SIGTERM|PMIX_MCA",
    re.IGNORECASE,
)
_HEAD = 160
# NCCL says WARN of what it dies of.
_LAST_WORDS = re.compile(r"(?:NCCL|CCOM) WARN|\bNET/(?:OFI|IB)\b")
# Levels as logging, glog, c10 and TensorFlow write them.
_TOLD = re.compile(
    r"(?<![=\w])(?:INFO|DEBUG)\b|(?:^|[\[\s:])I(?:\d{3,4})? (?=[\d:. ]{0,30}[\w/]{1,80}[.\]\s/])"
)
_LEVEL = re.compile(
    r"(?<![=\w])WARN(?:ING)?\b|^warning: "
    r"|(?:^|[\[\s:])W(?:\d{3,4})? (?=[\d:. ]{0,30}[\w/]{1,80}[.\]\s/])"
)
_PYTHON_WARNING = re.compile(r"(?:^|[\s.:])[A-Z]?[a-z]{0,20}[A-Z]?[a-z]{0,20}Warning: ")


def is_noise(text: str) -> bool:
    return bool(_NOISE.search(text))


def is_told(text: str) -> bool:
    """Tell whether a line was logged as information, below the level of a warning."""
    head = text[:_HEAD]
    return not _LAST_WORDS.search(head) and bool(_TOLD.search(head))


def is_warning(text: str) -> bool:
    """Tell whether a line was logged as a warning, often about a call that was retried and then succeeded."""
    head = text[:_HEAD]
    return not _LAST_WORDS.search(head) and bool(_LEVEL.search(head) or _PYTHON_WARNING.search(text))


ADVICE: Mapping[FailureClass, str] = {
    FailureClass.SERVICE: "SageMaker failed, not the job: run it again; if it repeats, ask AWS Support.",
    FailureClass.CAPACITY: "AWS had no such instances: wait, or name shapes in trainmaster:alternatives.",
    FailureClass.HARDWARE: "A GPU or host is broken: run it again, it will get other instances.",
    FailureClass.NETWORK: (
        "The hosts lost each other: run it again; if it repeats, look for a rank that is late or has died,"
        " and check that the security group allows all traffic within itself."
    ),
    FailureClass.GPU_OOM: (
        "The GPU ran out of memory: use a smaller batch with more gradient accumulation, activation"
        " checkpointing or sharding, or a GPU with more memory."
    ),
    FailureClass.HOST_OOM: (
        "The host ran out of memory: use fewer or leaner data loader workers, load data in parts, or take an"
        " instance type with more memory."
    ),
    FailureClass.DISK_FULL: (
        "A disk is full: raise VolumeSizeInGB, stream the input (FastFile) or keep fewer checkpoints."
    ),
    FailureClass.DATA_ACCESS: (
        "Data could not be read or written: check the URI, the role's S3 and KMS permissions, and the route"
        " from the subnets to S3."
    ),
    FailureClass.IMAGE: (
        "The image does not start: check its URI, the role's ECR permissions, its entry point, and that it"
        " fits the instance's processor and driver."
    ),
    FailureClass.USER_CODE: "The program failed: fix it; it would fail again.",
    FailureClass.UNKNOWN: "No known failure was found in the failure reason or the log: read the log.",
}


MAX_LINES = 400
"""Most lines that are read: the last ones of the log, the first ones of the failure reason."""
# As SageMaker's SDK passes a failure reason on.
_PASSED_ON = re.compile(r"^.{0,80}\bError for \w{1,40} job \S{1,80}: \w{1,10}\. Reason: ", re.IGNORECASE)
# What a warning must not make of a failure: it would be tried again for something that had passed.
_TAKES_MORE_THAN_A_WARNING = (FailureClass.SERVICE, FailureClass.CAPACITY, FailureClass.NETWORK)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureEvidence:
    """Traces that a failed training job left."""

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


def diagnose(traces: FailureEvidence) -> Diagnosis:
    """Diagnose why a training job failed. It never raises: evidence that matches nothing is of class unknown.

    When one rank dies, the others lose their connection to it. So what hosts log about the network counts
    only where no line and no exit code gives a cause.
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


def _findings(traces: FailureEvidence, exit_code: int | None) -> Iterator[_Finding]:
    """Yield findings in the order of trust: of equally certain ones the first counts."""
    head, *rest = _PASSED_ON.sub("", traces.failure_reason or "").splitlines()[:MAX_LINES] or [""]
    yield from _found_in(head, SIGNATURES)
    for line in rest:  # the program's words, as SageMaker quotes them
        yield from _found_in(line, _OF_LOGS)
    if exit_code:
        yield _exit(exit_code)
    tail = traces.log_tail[-MAX_LINES:]
    for line, exception in dict.fromkeys(zip(tail, raised(tail), strict=True)):  # ranks repeat each other
        yield from _logged(line)
        if exception is not None:
            yield from _raised(exception)


def _raised(exception: str) -> Iterator[_Finding]:
    """Classify the exception that ended a traceback; one that no signature knows is the program's own."""
    known = next(_found_in(exception, _OF_LOGS), None)
    if known is None or known.certainty is Certainty.EXIT:
        yield _Finding(
            failure_class=FailureClass.USER_CODE,
            certainty=Certainty.EXCEPTION,
            advice=None,
            evidence=evidence_of(readable(exception), _ANYTHING),
        )


def _logged(line: str) -> Iterator[_Finding]:
    """Classify a log line: broken hardware counts at any level, other warnings are hints at most."""
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
    for signature in signatures:
        if signature.pattern.search(text):
            yield _Finding(
                failure_class=signature.failure_class,
                certainty=signature.certainty,
                advice=signature.advice,
                evidence=evidence_of(text, signature.pattern),
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
_OF_LOGS = tuple(signature for signature in SIGNATURES if signature.certainty is not Certainty.CODE)
