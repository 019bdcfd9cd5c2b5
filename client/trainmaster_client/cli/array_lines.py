"""Lines about one array: the sheet of ``show``, and why no further task starts."""

from collections.abc import Iterator

from trainmaster_client.api import Document
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.array_views import ArrayView, array_view
from trainmaster_client.jobs.job_views import Parent


def array_sheet(document: Document) -> list[str]:
    """Return what is known of an array, a line a fact. Raises MalformedViewError."""
    array = array_view(document)
    return [array.line, *(f"  {name}: {text}" for name, text in _facts(array, document) if text)]


def array_why(document: Document) -> list[str]:
    """Return why no further task of an array starts, and what would help. Raises MalformedViewError."""
    array = array_view(document)
    return [array.line, *(f"  What would help: {text}" for text in _help(array))]


def _facts(array: ArrayView, document: Document) -> Iterator[tuple[str, str]]:
    yield "pool", array.pool
    yield "team", array.team
    yield "priority", str(array.priority)
    yield "at most", "" if array.at_most is None else f"{array.at_most} tasks at once"
    yield "position", "" if array.position is None else f"{array.position}, of its first waiting task"
    yield "after", ", ".join(_parent(Parent.parse(parent)) for parent in document.get("after") or ())
    yield "failed tasks", array.failed
    yield "stopped tasks", array.stopped
    yield "rerun of", array.rerun_of
    yield "submitted", array.submitted_at
    yield "ended", array.ended_at
    yield "instance-hours", "" if array.instance_hours is None else f"{array.instance_hours:.2f}"
    yield "cost in USD", "" if array.usd is None else f"{array.usd:.2f}"


def _parent(parent: Parent) -> str:
    return f"{printable(parent.condition)} ({parent.state})" if parent.state else printable(parent.condition)


def _help(array: ArrayView) -> Iterator[str]:
    if array.is_final:
        if array.tasks.failed:
            yield f"trainmaster rerun {array.name} runs the failed ones again"
        return
    if array.tasks.held:
        yield f"trainmaster release {array.name}"
    if array.tasks.waiting and array.at_most is not None and array.tasks.running >= array.at_most:
        yield f"trainmaster throttle {array.name} N, or none: {array.at_most} tasks run, as many as may"
    if array.waiting is not None and array.waiting.code == "dependency":
        yield f"trainmaster tree {array.name} shows what it waits for"
    elif array.tasks.waiting:
        yield f"trainmaster why {array.name}-I explains what task I waits for"
