"""Adds changes of tasks to the rows of their arrays, in the transactions of the tasks.

Sums and bits are only ever added to, so tasks that start or end at the same time do not lose against each
other. A task ends once, so adding the number of its bit sets the bit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from trainmaster.adapters.dynamodb.array_layout import (
    ARRAY_HELD,
    AT_MOST,
    CENTS,
    COMPLETED,
    FAILED,
    HELD,
    INSTANCE_SECONDS,
    RECENT,
    RUNNING,
    STOPPED,
    UNPRICED,
    WAITING,
    array_key,
)
from trainmaster.adapters.dynamodb.updates import Update, Updates
from trainmaster.core.arrays.array_model import MOST_RECENT_CHARACTERS
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.lifecycle.change import Change, failure_class
from trainmaster.core.planning.throttles import Throttle

WORD_BITS = 120
"""Bits of one number: DynamoDB keeps 38 decimal digits, and 2**120 has 37."""
_WORDS_OF: Mapping[JobState, str] = {
    JobState.COMPLETED: COMPLETED,
    JobState.FAILED: FAILED,
    JobState.STOPPED: STOPPED,
}


def place_task(updates: Updates, job: Job, sign: int) -> None:
    """Count a task where its job stands; a job that is no task changes nothing."""
    if job.spec.array is None:
        return
    add = updates[array_key(job.spec.array.name)].add
    if job.is_final:
        word, bit = divmod(job.spec.array.position, WORD_BITS)
        add[f"{_WORDS_OF[job.state]}{word}"] += sign << bit
    elif job.is_live:
        add[RUNNING] += sign
    else:
        add[HELD if job.state is JobState.HELD else WAITING] += sign


def add_bits(update: Update, prefix: str, bits: int) -> None:
    """Set bits that are not set yet."""
    word = 0
    while bits:
        update.add[f"{prefix}{word}"] += bits & ((1 << WORD_BITS) - 1)
        bits >>= WORD_BITS
        word += 1


def note_task_ends(updates: Updates, change: Change) -> None:
    """Note what an ended attempt cost, and of an ended task how it ended."""
    array, ended = change.after.spec.array, change.ended
    if array is None:
        return
    update = updates[array_key(array.name)]
    if ended is not None:
        update.add[INSTANCE_SECONDS] += ended.bill.instance_seconds
        update.add[CENTS] += ended.bill.cents or 0
        update.add[UNPRICED] += int(ended.bill.cents is None)
    if change.after.is_final and not change.before.is_final:
        note_end_class(update, change)


def note_end_class(update: Update, change: Change) -> None:
    """Append the class of a failure, or "" for a task that was stopped, for the brake on equal failures."""
    if change.after.state is JobState.COMPLETED:
        return
    has_failed = change.after.state is JobState.FAILED
    text = failure_class(change)[:MOST_RECENT_CHARACTERS] if has_failed else ""
    update.append.setdefault(RECENT, []).append(text)


def throttle_claims(updates: Updates, changes: Iterable[Change], throttles: Iterable[Throttle]) -> None:
    """Require that each array lets so many more of its tasks run, and is as it was when that was decided."""
    starts = Counter(
        change.after.spec.array.name
        for change in changes
        if change.after.spec.array is not None and change.after.is_live and not change.before.is_live
    )
    for throttle in throttles:
        conditions = updates[array_key(throttle.array)].conditions
        conditions.append(("attribute_not_exists(#n) OR #n = :v", ARRAY_HELD, False))
        if throttle.at_most is None:
            conditions.append(("attribute_not_exists(#n)", AT_MOST, None))
            continue
        room = throttle.at_most - starts[throttle.array]
        conditions.append(("#n = :v", AT_MOST, throttle.at_most))
        conditions.append(("attribute_not_exists(#n) OR #n <= :v", RUNNING, room))
