"""The steps of one job: when, how long, what, and why."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from trainmaster_client.api import Document
from trainmaster_client.cli.instants import length
from trainmaster_client.http.printable import printable
from trainmaster_client.jobs.job_views import JobView, Transition, job_view
from trainmaster_client.jobs.progress import transition_line

MOST_STEPS = 200
"""The API gives the last ones; earlier ones are not summed up."""

_SUMMED = {
    "waited": frozenset({"pending", "preempted", "held"}),
    "started": frozenset({"starting"}),
    "ran": frozenset({"running"}),
    "stopped": frozenset({"preempting", "stopping"}),
}
"""What the job did in its states, in words."""


def past_lines(document: Document, *, now: datetime) -> Iterator[str]:
    """The sum of it, then a line a step."""
    job = job_view(document)
    spans = _spans(job.history, is_over=job.is_final, now=now)
    yield f"{job.name}: {job.state}{f' - {job.why}' if job.is_final and job.why else ''}"
    if sums := ", ".join(_sums(job.history, spans)):
        yield f"  {sums}"
    if counts := ", ".join(_counts(document)):
        yield f"  {counts}"
    if len(job.history) >= MOST_STEPS:
        yield f"  only the last {MOST_STEPS} steps are kept at hand"
    yield from (_line(step, span, job) for step, span in zip(job.history, spans, strict=True))


def _spans(history: Sequence[Transition], *, is_over: bool, now: datetime) -> list[timedelta | None]:
    """How long each step lasted; None for the end, which lasts."""
    if not history:
        return []
    ends = [later.at for later in history[1:]]
    last = None if is_over else now - history[-1].at
    return [*(end - step.at for end, step in zip(ends, history, strict=False)), last]


def _sums(history: Sequence[Transition], spans: Sequence[timedelta | None]) -> Iterator[str]:
    for word, states in _SUMMED.items():
        parts = [
            span for step, span in zip(history, spans, strict=True) if span is not None and step.to in states
        ]
        if total := sum(parts, timedelta()):
            yield f"{word} {length(total)}"


def _counts(document: Document) -> Iterator[str]:
    """How often it came back, what was lost, what it cost."""
    for key, one, many in (("preemptions", "preemption", "preemptions"), ("retries", "retry", "retries")):
        if count := int(document.get(key) or 0):
            yield f"{count} {one if count == 1 else many}"
    yield from losses(document)
    if (cost := document.get("cost_usd")) is not None:
        yield f"{cost:.2f} USD{' so far' if document.get('cost_is_estimate') else ''}"


def losses(document: Document) -> Iterator[str]:
    """Time that was wasted, by its cause."""
    for cause, seconds in (document.get("wasted_seconds") or {}).items():
        if seconds:
            yield f"lost {length(timedelta(seconds=seconds))} to {printable(cause)}"


def _line(step: Transition, span: timedelta | None, job: JobView) -> str:
    at, _, text = transition_line(step, job).partition(" ")
    clock, _, what = text.partition(" ")
    return f"{at} {clock} {length(span) if span is not None else '-':>7}  {what}"
