"""Show an array and its tasks as plain JSON values; every key is always present."""

from collections.abc import Mapping

from trainmaster.api.parent_jobs import parent_views, states_of, waits_for_parents
from trainmaster.api.request_context import RequestContext
from trainmaster.api.views import View, instant_text, reason_view
from trainmaster.core.arrays.model import FINAL_ARRAY_STATES, Array, ArrayState
from trainmaster.core.arrays.steps import end_text
from trainmaster.core.arrays.virtual_tasks import virtual_task
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.index_sets import ranges_text
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.array_tasks import why_held
from trainmaster.core.planning.throttles import throttle_text

_SECONDS_PER_HOUR = 3600


def array_view(array: Array, context: RequestContext, *, position: int | None = None) -> View:
    """Show an array to its team and to admins.

    Args:
        array: As it is now.
        context: Who asks.
        position: Rank of its first waiting task in the queue; None if it has none, or was not counted.
    """
    spec, counts, template = array.template.spec, array.counts, array.template
    states = states_of(context, [template])
    waiting = waits_for_parents(template, states) or _why_it_waits(array)
    return {
        "name": array.name,
        "team": spec.team,
        "submitted_by": spec.submitted_by,
        "pool": spec.pool,
        "state": array.state.value,
        "reason": reason_view(_reason(array)),
        "waiting": reason_view(waiting),
        "priority": template.priority,
        "at_most": array.at_most,
        "stop_after_failures": array.stop_after_failures,
        "tasks": {
            "total": counts.total,
            "waiting": counts.waiting,
            "held": counts.held,
            "running": counts.running,
            "completed": counts.completed,
            "failed": counts.failed,
            "stopped": counts.stopped,
        },
        "indices": ranges_text(array.indices),
        "failed": ranges_text(array.indices_at(array.ends.failed)),
        "stopped": ranges_text(array.indices_at(array.ends.stopped)),
        "position": position,
        "after": list(parent_views(template, context, states)),
        "eligible_at": instant_text(template.queued_since),
        "submitted_at": instant_text(spec.submitted_at),
        "ended_at": instant_text(array.ended_at),
        "instance_hours": round(array.sums.instance_seconds / _SECONDS_PER_HOUR, 4),
        "usd": None if array.sums.unpriced else array.sums.cents / 100,
        "rerun_of": array.rerun_of,
    }


def _reason(array: Array) -> Reason | None:
    """Return why the array has ended; None before that."""
    if array.state not in FINAL_ARRAY_STATES:
        return None
    if array.ended_for_parent:
        return array.template.reason
    if array.state is ArrayState.COMPLETED:
        return Reason(code=ReasonCode.COMPLETED, message="all tasks completed")
    if array.cancelled:
        return Reason(code=ReasonCode.STOPPED_BY_USER, message=f"stopped by {array.stopped_by}")
    return Reason(code=ReasonCode.FAILED, message=end_text(array).partition(": ")[2])


def _why_it_waits(array: Array) -> Reason | None:
    """Return why no further task starts, as far as the array itself is the cause."""
    if not array.counts.waiting and not array.counts.held:
        return None
    if array.held:
        return Reason(code=ReasonCode.HELD, message=why_held(array))
    if array.template.state is JobState.HELD:
        return array.template.waiting
    if array.at_most is not None and array.jobs.running >= array.at_most:
        text = throttle_text(array.name, array.jobs.running, array.at_most)
        return Reason(code=ReasonCode.ARRAY_LIMIT, message=text)
    return None


def task_view(array: Array, position: int, job: Job | None, values: Mapping[str, str]) -> View:
    """Show one task in the list of an array's tasks.

    Args:
        array: The array.
        position: Which of its tasks.
        job: Its job, if it is one and was read.
        values: Hyperparameters of the task that differ from the request's.
    """
    task = job if job is not None else virtual_task(array, position)
    live_cents = None if task.spent.unpriced else task.spent.cents
    return {
        "index": array.indices[position],
        "name": task.name,
        "values": dict(values),
        "state": task.state.value,
        "reason": reason_view(task.reason or task.waiting),
        "attempt": task.attempt,
        "cost_usd": None if live_cents is None else live_cents / 100,
        "started_at": instant_text(task.started_at),
        "ended_at": instant_text(task.ended_at),
    }
