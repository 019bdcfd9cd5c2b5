"""GET /violations: training jobs that bypassed the queue, and what rules that only audit have found."""

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
"""Records looked at for one answer: of a month that is nearly all other teams', pages may be short."""
WENT_ROUND = "unmanaged_jobs"
"""In position of a rule: key of the policy that speaks of such jobs."""


def show_violations(context: RequestContext) -> Answer:
    """The newest last."""
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
    """What the caller may see, and the mark behind which the next page begins; None at the end."""
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
    more = True
    while more:
        records = context.outside.reader.violations(month, after=after, limit=PAGE)
        yield from records
        more = len(records) == PAGE
        after = _place(_mark(month, records[-1])) if records else None


def _mark(month: str, record: ViolationRecord) -> Mark:
    at = record.at.isoformat(timespec="milliseconds")
    return Mark(section=month, order=(at, record.training_job_name), counted=0)


def _place(mark: Mark) -> tuple[str, str]:
    at, name = mark.order
    return str(at), str(name)


def _record_view(record: ViolationRecord) -> View:
    """``rule`` and ``message`` are those of what its outcome is owed to first."""
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
        "violations": [_violation_view(one) for one in enforced_first(record.violations)],
    }


def _violation_view(one: Violation) -> View:
    return {
        "rule": one.rule,
        "field": one.field,
        "message": one.message,
        "hint": one.hint,
        "mode": one.mode.value,
    }
