"""``trainmaster why``: why a job does not run, who is ahead, when it may start, and what would help."""

from collections.abc import Iterator
from datetime import UTC, datetime

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.cli.connection import LARGEST_PAGE, connect
from trainmaster_client.cli.instants import likely_start
from trainmaster_client.cli.jobs import JobName
from trainmaster_client.cli.queue_table import NO_NAME
from trainmaster_client.cli.screen import JsonFlag, print_json, print_lines
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.progress import place_line

SHOWN_AHEAD = 5
"""Jobs ahead that are named; more are only counted."""

HELP = {
    "ahead": "raise its priority: trainmaster priority {name} N",
    "capacity": "ask for fewer or other instances (tag trainmaster:alternatives), or raise its priority if"
    " others may be preempted: trainmaster priority {name} N",
    "quota": "wait for one of your team's jobs to end, or ask an admin to raise the team's quota or"
    " borrowing_limit",
    "budget": "set a shorter MaxRuntimeInSeconds, or ask an admin to raise the team's budget",
    "held": "run: trainmaster release {name}",
    "backoff": "nothing to do; it retries automatically",
    "reservation": "set a shorter MaxRuntimeInSeconds: a job that is certain to end in time may go first",
    "account-limit": "ask AWS Service Quotas for a higher training quota on this type",
    "paused": "ask an admin to resume: trainmaster policy resume",
    "recount": "ask an admin to pause and to run trainmaster repair --apply",
}
"""By the code of the reason."""


def why(job: JobName, *, as_json: JsonFlag = False) -> None:
    """Show why a job waits, who is ahead of it, when it is likely to start and what would help."""
    api = connect()
    document = api.job(job)
    if as_json:
        print_json(document)
        return
    view = job_view(document)
    print_lines(_lines(view, document, _ahead(api, view)))


def _lines(job: JobView, document: Document, ahead: list[JobView]) -> Iterator[str]:
    if not job.is_waiting:
        yield f"{job.name} does not wait: it is {job.state}{f' - {job.why}' if job.why else ''}"
        yield from (f"  {warning}" for attempt in job.attempts for warning in attempt.warnings)
        return
    yield f"{job.name}: {place_line(job)}"
    start = document.get("estimated_start")
    if isinstance(start, dict):
        yield f"  {likely_start(start, now=datetime.now(UTC))}"
    elif document.get("estimate_note"):
        yield f"  Start {printable(document['estimate_note'])}"
    if ahead:
        left = (job.position or 0) - 1 - SHOWN_AHEAD
        more = f" and {left} more" if left > 0 else ""
        yield f"  Ahead: {', '.join(_named(one) for one in ahead[:SHOWN_AHEAD])}{more}"
    if job.waiting and job.waiting.code in HELP:
        yield f"  What would help: {HELP[job.waiting.code].format(name=job.name)}"


def _ahead(api: ApiClient, job: JobView) -> list[JobView]:
    """Those before it in the pool's queue, as far as one page shows them."""
    if not job.is_waiting or job.position in {None, 1}:
        return []
    page = api.jobs(pool=job.pool, state="pending", limit=LARGEST_PAGE)
    again = api.jobs(pool=job.pool, state="preempted", limit=LARGEST_PAGE)
    views = [job_view(one) for one in [*(page.get("jobs") or ()), *(again.get("jobs") or ())]]
    before = [one for one in views if one.position is not None and one.position < (job.position or 0)]
    return sorted(before, key=lambda one: one.position or 0)


def _named(job: JobView) -> str:
    name = job.name or f"{NO_NAME} of team {job.team}"
    return f"{name} (priority {job.priority}, {job.instances})"
