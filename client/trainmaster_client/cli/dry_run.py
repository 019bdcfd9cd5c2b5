"""Puts into words what a dry run foresees."""

from collections.abc import Iterator
from datetime import UTC, datetime

from trainmaster_client.api import Document, field_problem
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.instants import clock, likely_start
from trainmaster_client.jobs.job_views import FINAL_STATES, NO_NAME


def foreseen(document: Document) -> Iterator[str]:
    """Yield what a dry run foresees of a job or an array, a line a fact."""
    warnings = [f"Warning: {field_problem(warning)}" for warning in document.get("warnings") or ()]
    if not document.get("valid"):
        yield "Not valid: it would be refused."
        yield from (f"  {field_problem(violation)}" for violation in document.get("violations") or ())
        yield from warnings
        return
    place, parents = document.get("position"), document.get("after") or ()
    where = f"at position {printable(place)}" if place is not None else "behind more than 1000 jobs"
    if any(parent.get("state") not in FINAL_STATES for parent in parents):
        where = f"once {', '.join(printable(parent.get('job') or NO_NAME) for parent in parents)} ended"
    yield f"Valid: it would wait in pool {printable(document.get('pool'))}, {where}."
    yield from _tasks_line(document)
    start = document.get("estimated_start")
    if isinstance(start, dict):
        yield f"{likely_start(start, now=datetime.now(UTC))}."
    elif document.get("estimate_note"):
        yield f"Start {printable(document['estimate_note'])}."
    yield from _end_line(document)
    victims = document.get("would_preempt") or ()
    if victims:
        names = ", ".join(printable(name) if name else "a job of another team" for name in victims)
        yield f"It would preempt: {names}."
    cost = document.get("estimated_cost_usd")
    all_tasks = " of all tasks" if "tasks" in document else ""
    usd = printable(cost) if cost is not None else "unknown, a price is missing"
    yield f"Likely cost{all_tasks} in USD: {usd}."
    yield from _width_lines(document, now=datetime.now(UTC))
    yield from warnings
    yield from (_spot_line(record) for record in document.get("spot_record") or ())


def _tasks_line(document: Document) -> Iterator[str]:
    """Yield how many tasks an array would have; nothing for a job."""
    count = document.get("tasks")
    if count is not None:
        at_most = document.get("at_most") or (document.get("array") or {}).get("at_most")
        throttle = "as many as fit" if at_most is None else f"at most {at_most}"
        yield f"{printable(count)} tasks, {throttle} at once."


def _end_line(document: Document) -> Iterator[str]:
    """Yield when the last task of an array would end, if that was estimated."""
    end = document.get("estimated_end")
    instant = end.get("p50") if isinstance(end, dict) else end
    if instant:
        at = datetime.fromisoformat(str(instant))
        yield f"Its last task likely ends {clock(at, datetime.now(UTC))}."


def _width_lines(document: Document, *, now: datetime) -> Iterator[str]:
    """Yield what each width of an elastic job would take; nothing for other jobs."""
    for entry in document.get("widths") or ():
        start, cost = entry.get("estimated_start"), entry.get("estimated_cost_usd")
        begins = likely_start(start, now=now) if isinstance(start, dict) else "Likely start: unknown"
        usd = "a price is missing" if cost is None else f"about {cost:.2f} USD"
        facts = [begins[0].lower() + begins[1:], *end_words(entry, now=now), usd]
        yield f"At {printable(entry.get('width'))} instances: {'; '.join(facts)}."


def end_words(entry: Document, *, now: datetime) -> Iterator[str]:
    """Yield when a job at a width would end, and after how long a training, if that was estimated."""
    end, hours = entry.get("estimated_end"), entry.get("training_hours")
    if hours is None:
        return
    likely = ""
    if isinstance(end, dict) and end.get("p50"):
        likely = f"likely end: {clock(datetime.fromisoformat(str(end['p50'])), now)}, after "
    yield f"{likely}{hours:g} h of training"


def _spot_line(record: Document) -> str:
    name, expected = printable(record.get("instance_type")), record.get("expected_interruptions")
    if expected is None:
        return f"Spot {name}: no job of this stack ran on it in the last 30 days."
    return f"Spot {name}: at the recent rate it would be interrupted {expected:g} times."
