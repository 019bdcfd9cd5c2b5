"""Lets the jobs that waited for one that has ended begin their time in the queue, or ends them with it.

A message says which job ended. Its children are read in slices, each child is one conditional transaction,
and after each slice the message says how far it went: a death in between repeats at most a slice, which
changes nothing. A child that ends has ended for its own children too; those are followed at once, so a chain
does not need a pass for each of its jobs.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from trainmaster.core.errors import LostRaceError, RowSetAsideError
from trainmaster.core.jobs.end_conditions import Dependent, EndedParent
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.dependents import after_parent
from trainmaster.core.outbox import dependents_ended_notice, to_tell
from trainmaster.core.outbox.derive import messages_to_dependents
from trainmaster.core.outbox.messages import OutboxMessage
from trainmaster.core.policy import PoolPolicy
from trainmaster.services import job_steps
from trainmaster.services.scheduler.array_expansion import array_after_parent
from trainmaster.services.scheduler.context import PassContext

SLICE = 50
"""Children read and released between two notes of how far it went."""
MOST_AT_ONCE = 500
"""Children of one look at a pool; then the pass plans before it goes on."""


@dataclass(slots=True)
class Released:
    """Counts what one call has done and what it has left."""

    pools: set[str] = field(default_factory=set)
    """Pools with something to do now: a job became eligible, or a message was left."""
    seen: int = 0
    """Children that know of an end now, changed or not."""
    is_whole: bool = False
    """The message that was asked for is done."""


def release_dependents(message: OutboxMessage, context: PassContext) -> Released:
    """Tell the children of a job that it has ended, and continue with the children of those that end with it.

    Crash safety: ``note_released`` follows the slice it speaks of. The message of a child that ended is left
    by the transaction of its end, in the child's pool; it is deleted here once its children know.
    """
    released = Released()
    work = deque([(context.pool, message)])
    while work and released.seen < MOST_AT_ONCE and not context.deadline.is_over:
        pool, current = work.popleft()
        is_done, ended = _release_children(pool, current, context, released)
        work.extend(ended)
        if current is message:
            released.is_whole = is_done
        elif is_done:
            context.messages.done(pool, current)
        else:
            released.pools.add(pool)
    released.pools |= {pool for pool, _ in work}
    return released


def _release_children(
    pool: str, message: OutboxMessage, context: PassContext, released: Released
) -> tuple[bool, list[tuple[str, OutboxMessage]]]:
    """Slice by slice; whether all children know of it, and the messages of those that ended with it."""
    parent, upto, left = message.parent, message.upto or "", list[tuple[str, OutboxMessage]]()
    assert parent is not None, message
    while not context.deadline.is_over:
        children = context.reader.dependents(parent.entry_id, after=upto, limit=SLICE)
        for change in _tell_all(children, parent, context):
            if not change.after.is_parked:  # it is eligible, or has ended and left a notice
                released.pools.add(change.after.spec.pool)
            messages = messages_to_dependents(change, at=context.clock())
            left += [(change.after.spec.pool, message) for message in messages]
        released.seen += len(children)
        if len(children) < SLICE:
            return True, left
        upto = children[-1].name
        if released.seen >= MOST_AT_ONCE:
            break
        context.store.note_released(pool, message, upto=upto)
    context.store.note_released(pool, message, upto=upto)
    return False, left


def _tell_all(children: Sequence[Dependent], parent: EndedParent, context: PassContext) -> list[Change]:
    """Return what became of these children, beside each other; raises the first error once all of them know.

    One whose row cannot be understood is left out: it keeps none of the others waiting.
    """
    jobs = context.pools.jobs(child.name for child in children if not child.is_array)
    changes, errors = list[Change](), list[Exception]()

    def tell(child: Dependent) -> None:
        try:
            tell_child = _tell_array if child.is_array else partial(_tell, job=jobs.get(child.name))
            if (change := tell_child(child, parent=parent, context=context)) is not None:
                changes.append(change)
        except RowSetAsideError:
            return
        except Exception as error:  # noqa: BLE001  raised below: the other children are not to wait for it
            errors.append(error)

    context.beside(partial(tell, child) for child in children)
    if errors:
        raise errors[0]
    return changes


def _tell_array(child: Dependent, parent: EndedParent, context: PassContext) -> Change | None:
    """Tell an array that a job which it waits for has ended: its tasks may start, or all end with it."""
    for _ in range(job_steps.TRIES):
        array = context.reader.array(child.name)
        if array is None or array.entry_id != child.entry_id or array.is_ended:
            return None
        pool = context.policy.pool(array.template.spec.pool) or PoolPolicy(
            name=array.template.spec.pool, capacity={}
        )
        change = after_parent(array.template, parent, pool=pool, now=context.clock())
        if change is None:
            return None
        notify_once(change, context)
        after, messages = array_after_parent(array, change.after, context)
        with suppress(LostRaceError):
            context.store.commit_array(array, after, messages=messages)
            return change
    raise LostRaceError("the array kept changing; try again")


def _tell(child: Dependent, job: Job | None, parent: EndedParent, context: PassContext) -> Change | None:
    def read() -> Job | None:
        job = context.reader.job(child.name)
        return job if job is not None and job.spec.entry_id == child.entry_id else None

    def step(job: Job) -> Change | None:
        pool = context.policy.pool(job.spec.pool) or PoolPolicy(name=job.spec.pool, capacity={})
        change = after_parent(job, parent, pool=pool, now=context.clock())
        if change is not None:
            notify_once(change, context)
        return change

    known = job if job is not None and job.spec.entry_id == child.entry_id else None
    return job_steps.change_job(known, step, read=read, store=context.store, clock=context.clock)


def notify_once(change: Change, context: PassContext) -> None:
    """Leave the one notice of a root and a team before the first of the team's jobs ends for it.

    Before, not with it: a death in between leaves a notice of what the next pass makes true.
    """
    job = change.after
    if job.after is None or job.after.root is None or change.before.after == job.after:
        return
    reason = job.reason if job.is_final else job.waiting
    if reason is None or reason.code is not ReasonCode.DEPENDENCY:
        return
    root, team = job.after.root, job.spec.team
    message = to_tell(
        dependents_ended_notice(job), cause=f"{root.entry_id}#dependents#{team}", at=context.clock()
    )
    context.store.leave_for_root(job.spec.pool, message, root_entry_id=root.entry_id, team=team)
