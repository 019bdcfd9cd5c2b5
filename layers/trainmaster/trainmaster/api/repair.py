"""POST and GET /repair: recount the table from its jobs.

Only admins start it; the reconcile function, which runs each minute, does the work.
"""

from http import HTTPStatus

from trainmaster.api.paging import MOST_BYTES, fitting
from trainmaster.api.request_context import Answer, RequestContext
from trainmaster.api.views import View, instant_text
from trainmaster.core.errors import FieldError, JobConflictError, invalid
from trainmaster.core.request.strict_json import JsonObject, parse_object
from trainmaster.core.row_differences import Difference, Repair, RepairState

MOST_LISTED = 1000
"""Most differences that one answer lists."""


def start_repair(context: RequestContext) -> Answer:
    """Start a repair, or show the one that runs.

    Raises JobConflictError if starts are not paused for one that writes, or if another kind of repair runs.
    """
    context.call.parameters()
    call = context.call
    wanted = _apply(parse_object(call.body, base64=call.is_base64, content_type=call.content_type))
    if wanted and not context.stored.paused:
        raise _refused(
            "apply", "nothing may start while rows are rebuilt", "pause first: trainmaster policy pause"
        )
    repairs = context.outside.repairs
    running = repairs.repair()
    if running is not None and running.state is RepairState.RUNNING:
        if running.apply is not wanted:
            raise _refused("apply", "another repair is running", "wait for it: trainmaster repair shows it")
        return Answer(status=HTTPStatus.ACCEPTED, body=_view(running, context))
    now = context.outside.clock()
    repair = Repair(id=instant_text(now) or "", state=RepairState.RUNNING, apply=wanted)
    repairs.save(repair)
    return Answer(status=HTTPStatus.ACCEPTED, body=_view(repair, context))


def show_repair(context: RequestContext) -> Answer:
    context.call.parameters()
    return Answer(status=HTTPStatus.OK, body=_view(context.outside.repairs.repair(), context))


def _view(repair: Repair | None, context: RequestContext) -> View:
    """Show a repair; before the first one only the rows that were set aside are shown."""
    repairs, now = context.outside.repairs, context.outside.clock()
    different = repairs.differences(repair) if repair else ()
    broken = repairs.found(repair)[1] if repair else ()
    by_key = {row.key: row for row in (*broken, *context.outside.register.noted(now=now))}
    return {
        "state": (repair.state if repair else RepairState.DONE).value,
        "apply": repair.apply if repair else False,
        "jobs_read": repair.jobs_read if repair else 0,
        "differences": fitting(map(_difference_view, different[:MOST_LISTED]), most=MOST_BYTES // 2),
        "set_aside": fitting(
            ({"key": key, "error": by_key[key].error} for key in sorted(by_key)), most=MOST_BYTES // 2
        ),
        "started_at": repair.id if repair else None,
        "finished_at": instant_text(repair.finished_at) if repair else None,
    }


def _difference_view(difference: Difference) -> View:
    return {
        "row": difference.row,
        "field": difference.field,
        "stored": difference.stored,
        "computed": difference.computed,
    }


def _apply(body: JsonObject) -> bool:
    wanted = body.get("apply")
    if isinstance(wanted, bool) and len(body) == 1:
        return wanted
    error = FieldError(
        field="apply",
        message="must be the only key, and true or false",
        hint='send {"apply": false} to see what would change, {"apply": true} to change it',
    )
    raise invalid([error])


def _refused(field: str, message: str, hint: str) -> JobConflictError:
    error = FieldError(field=field, message=message, hint=hint)
    return JobConflictError(f"{field}: {message}", errors=[error])
