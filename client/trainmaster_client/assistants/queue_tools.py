"""The tools: each asks the API and answers with at most so many entries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.assistants.tool_answers import (
    AttemptEntry,
    JobAnswer,
    ParentEntry,
    QueueAnswer,
    QueueEntry,
    SpanEntry,
    TimelineAnswer,
    TreeAnswer,
    UsageAnswer,
    UsageGroup,
    WhyAnswer,
    bounded,
)
from trainmaster_client.errors import MalformedViewError
from trainmaster_client.http.answers import printable
from trainmaster_client.jobs.dependency_trees import DependencyTree
from trainmaster_client.jobs.job_views import Attempt, JobView, job_view
from trainmaster_client.jobs.newer_routes import newer_route
from trainmaster_client.jobs.timelines import AttemptSpan, timeline
from trainmaster_client.logs.joined_attempts import JobLogs, Selection, cleaned

MOST_JOBS = 100
MOST_ATTEMPTS = 20
"""Attempts shown of one job, the newest."""
MOST_SPANS = 200
MOST_GROUPS = 100
MOST_LOG_LINES = 100
MOST_DEPENDENTS = 20
MOST_TREE_LINES = 200
SHOWN_AHEAD = 5
LARGEST_PAGE = "100"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTools:
    """Each method raises TrainmasterClientError."""

    api: Callable[[], ApiClient]
    logs_client: Callable[[], Any]
    now: Callable[[], datetime]

    def queue(self, filters: Mapping[str, str | None], *, limit: int) -> QueueAnswer:
        page = self.api().jobs(**filters, limit=str(limit))
        jobs = [_entry(job_view(document)) for document in page.get("jobs") or ()]
        is_more = bool(page.get("next_token")) or len(jobs) > limit
        return QueueAnswer(jobs=jobs[:limit], is_truncated=is_more)

    def job(self, name: str, *, log_lines: int) -> JobAnswer:
        document = self.api().job(name, estimate=False)
        view = job_view(document)
        return JobAnswer(
            job=_entry(view),
            attempts=[_attempt(attempt) for attempt in view.attempts[-MOST_ATTEMPTS:]],
            warnings=[bounded(warning) for attempt in view.attempts for warning in attempt.warnings],
            lost_seconds=_amounts(document.get("wasted_seconds")),
            cost_usd=document.get("cost_usd"),
            after=_parents(view),
            dependents=[bounded(printable(child)) for child in document.get("dependents") or ()][
                :MOST_DEPENDENTS
            ],
            dependents_count=int(document.get("dependents_count") or 0),
            log_lines_of_the_program=self._log(document, log_lines) if log_lines else [],
        )

    def why(self, name: str) -> WhyAnswer:
        document = self.api().job(name)
        view = job_view(document)
        start = document.get("estimated_start") or {}
        return WhyAnswer(
            job=_entry(view),
            likely_start=start.get("p50"),
            likely_start_latest=start.get("p90"),
            ahead=[_entry(job) for job in self._ahead(view)],
            after=_parents(view),
        )

    def tree(self, name: str) -> TreeAnswer:
        lines = DependencyTree(api=self.api(), now=self.now()).lines(name)
        shown = [bounded(line) for line in lines[:MOST_TREE_LINES]]
        return TreeAnswer(lines=shown, is_truncated=len(lines) > len(shown))

    def usage(self, group_by: str, *, team: str | None, days: float) -> UsageAnswer:
        end = self.now()
        document = self.api().usage_by(group_by, team=team, start=_days_ago(end, days), end=_text(end))
        try:
            groups = [_group(group, group.get("key")) for group in document["groups"]]
            return UsageAnswer(
                start=printable(document["from"]),
                end=printable(document["to"]),
                group_by=printable(document["group_by"]),
                groups=groups[:MOST_GROUPS],
                total=_group(document["total"], "total"),
                is_truncated=len(groups) > MOST_GROUPS or bool(document.get("truncated")),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MalformedViewError(f"{type(error).__name__}: {error}") from error

    def timeline(self, pool: str | None, *, hours: float) -> TimelineAnswer:
        end = self.now()
        start = _days_ago(end, hours / 24)
        api = self.api()
        with newer_route(api, "/timeline"):
            seen = timeline(api.timeline(pool=pool, start=start, end=_text(end)))
        spans = sorted(seen.attempts, key=lambda span: span.claimed_at)
        return TimelineAnswer(
            start=start,
            end=_text(end),
            attempts=[_span(span) for span in spans[-MOST_SPANS:]],
            recorded_since=_instant(seen.since),
            is_truncated=len(spans) > MOST_SPANS,
        )

    def _log(self, document: Document, count: int) -> list[str]:
        lines = JobLogs(self.logs_client(), Selection(tail=count)).new_lines(document)
        return [bounded(cleaned(line.text)) for line in lines]

    def _ahead(self, job: JobView) -> Sequence[JobView]:
        """Return the nearest jobs before this one, as far as one page of each state shows them."""
        if not job.is_waiting or job.position is None:
            return []
        pages = [
            self.api().jobs(pool=job.pool, state=state, limit=LARGEST_PAGE)
            for state in ("pending", "preempted")
        ]
        views = [job_view(document) for page in pages for document in page.get("jobs") or ()]
        before = [view for view in views if view.position is not None and view.position < job.position]
        return sorted(before, key=lambda view: -(view.position or 0))[:SHOWN_AHEAD]


def _entry(job: JobView) -> QueueEntry:
    return QueueEntry(
        name=job.name,
        team=job.team,
        pool=job.pool,
        state=job.state,
        priority=job.priority,
        instances=job.instances,
        position=job.position,
        submitted_at=_instant(job.submitted_at),
        started_at=_instant(job.started_at),
        why=bounded(job.why),
    )


def _parents(job: JobView) -> list[ParentEntry]:
    return [
        ParentEntry(job=parent.job or None, condition=parent.kind, state=parent.state)
        for parent in job.parents
    ]


def _attempt(attempt: Attempt) -> AttemptEntry:
    return AttemptEntry(
        number=attempt.number,
        training_job_name=attempt.training_job_name,
        status=attempt.status,
        started_at=_instant(attempt.started_at),
        ended_at=_instant(attempt.ended_at),
        why=bounded(attempt.why),
        diagnosis=bounded(attempt.diagnosis or ""),
    )


def _span(span: AttemptSpan) -> SpanEntry:
    return SpanEntry(
        job=span.job,
        team=span.team,
        pool=span.pool,
        attempt=span.attempt,
        instances=dict(span.instances),
        claimed_at=span.claimed_at.isoformat(),
        training_since=_instant(span.training_since),
        ended_at=_instant(span.ended_at),
        end=span.end,
        preempted_by=span.preempted_by,
        lost_seconds=span.lost.total_seconds(),
    )


def _group(document: Document, key: object) -> UsageGroup:
    return UsageGroup(
        key=bounded(printable(key)),
        instance_hours=float(document["instance_hours"]),
        usd=document["usd"],
        usd_by_cause=_amounts(document.get("by")),
    )


def _amounts(document: Mapping[str, Any] | None) -> dict[str, float]:
    return {printable(cause): float(amount) for cause, amount in (document or {}).items()}


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _days_ago(at: datetime, days: float) -> str:
    return _text(at - timedelta(days=days))


def _text(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
