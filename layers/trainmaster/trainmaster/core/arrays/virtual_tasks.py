"""A task that is no job (yet), shown as the job that it would be."""

from dataclasses import replace

from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.tasks import task_job
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import NOT_YET
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode


def virtual_task(array: Array, position: int) -> Job:
    """Return a task as a job that nobody stored: it waits with its array, or ended without ever being one.

    Args:
        array: The array.
        position: Which of its tasks: one that is not stored as a job.
    """
    task, template = task_job(array, position), array.template
    if array.ends.name_taken >> position & 1:
        reason = Reason(code=ReasonCode.NAME_TAKEN, message="another job had the name of this task")
        return replace(task, state=JobState.FAILED, reason=reason)
    if array.ends.stopped >> position & 1:
        stopped = Reason(code=ReasonCode.STOPPED_BY_USER, message=f"stopped by {array.stopped_by}")
        reason = template.reason if array.ended_for_parent and template.reason else stopped
        return replace(task, state=JobState.STOPPED, reason=reason)
    if array.held:
        text = f"array {array.name} is held" + (f": {array.held_because}" if array.held_because else "")
        return replace(task, state=JobState.HELD, waiting=Reason(code=ReasonCode.HELD, message=text))
    if template.waits_for_others:
        return replace(
            task, state=template.state, after=template.after, waiting=template.waiting, not_before=NOT_YET
        )
    message = f"waits for its turn in array {array.name}"
    return replace(task, waiting=Reason(code=ReasonCode.AHEAD, message=message))
