"""GET /violations: training jobs that bypassed the queue, and findings of rules that only audit."""

import json
from collections.abc import Iterator
from http import HTTPStatus

from trainmaster.api.paging import Mark, Room, Seal
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.usage_groups import month_asked
from trainmaster.api.views import View, instant_text
from trainmaster.core.rules.violation import Violation, ViolationRecord, causes, enforced_first

PAGE = 500
"""Records of one answer; each is about 1 KB of the 6 MB that Lambda may answer."""
_MAX_READ = 2000
"""Records read for one answer; in a month that is nearly all other teams', pages may be short."""
WENT_ROUND = "unmanaged_jobs"
"""Shown as the rule of a job that bypassed the queue: the policy's key for such jobs."""


def show_violations(context: RequestContext) -> Answer:
    """List a month's records, the newest last."""
    given = context.call.parameters("month", "next_token")
    month = month_asked(context, given.get("month"))
    bound = json.dumps(["violations", context.is_admin, context.teams, month])
    seal = Seal(key=bytes.fromhex(context.stored.seal_key), bound=bound)
    start = seal.mark(given["next_token"]) if "next_token" in given else None
    page, end = _page(context, month, start)
    body = {
        "month": month,
        "violations": page,
        "next_token": seal.token(end) if end else None,
    }
    return Answer(status=HTTPStatus.OK, body=body)


def _page(context: RequestContext, month: str, start: Mark | None) -> tuple[list[View], Mark | None]:
    """Return what the caller may see, and the mark behind which the next page begins; None at the end."""
    page, room, end = list[View](), Room(), start
    walk = _walk(context, month, start)
    for looked, record in enumerate(walk, start=1):
        if context.sees(record.team):
            view = _record_view(record)
            if not room.takes(view) and page:
                return page, end
            page.append(view)
        end = _mark(month, record)
        if len(page) == PAGE or looked == _MAX_READ or not context.has_time:
            return page, end if next(walk, None) else None
    return page, None


def _walk(context: RequestContext, month: str, start: Mark | None) -> Iterator[ViolationRecord]:
    after = _place(start) if start else None
    may_continue = True
    while may_continue:
        records = context.outside.reader.violations(month, after=after, limit=PAGE)
        yield from records
        may_continue = len(records) == PAGE
        after = _place(_mark(month, records[-1])) if records else None


def _mark(month: str, record: ViolationRecord) -> Mark:
    at = record.at.isoformat(timespec="milliseconds")
    return Mark(section=month, order=(at, record.training_job_name), counted=0)


def _place(mark: Mark) -> tuple[str, str]:
    at, name = mark.order
    return str(at), str(name)


def _record_view(record: ViolationRecord) -> View:
    """Show a record; ``rule`` and ``message`` are of the first violation that caused its outcome."""
    cause = next(iter(causes(record)), None)
    return {
        "at": instant_text(record.at),
        "training_job_name": record.training_job_name,
        "training_job_arn": record.training_job_arn,
        "team": record.team,
        "principal": record.role_arn,
        "role_arn": record.role_arn,
        "unmanaged": record.unmanaged,
        "rule": cause.rule if cause else WENT_ROUND,
        "message": f"{cause.field} {cause.message}" if cause else "it did not come through the queue",
        "outcome": record.outcome.value,
        "action": record.outcome.value,
        "violations": [_violation_view(violation) for violation in enforced_first(record.violations)],
    }


def _violation_view(violation: Violation) -> View:
    return {
        "rule": violation.rule,
        "field": violation.field,
        "message": violation.message,
        "hint": violation.hint,
        "mode": violation.mode.value,
    }
