"""Steps of an array that are decided without the table: how many tasks to expand, when to hold, its end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.core.arrays.model import MOST_WAITING_JOBS, Array
from trainmaster.core.jobs.end_conditions import EndedParent, Root
from trainmaster.core.jobs.index_sets import bits_of, first_positions
from trainmaster.core.jobs.model import JobState

AT_ONCE = 9
"""Tasks of one expansion: each takes up to ten rows of the transaction, which has 100."""
MOST_RECENT = 200
"""Ends that the row keeps before a pass cuts them to those that count."""
MOST_QUOTED_INDICES = 20
MOST_READ = 64
"""Open arrays whose rows one look at a pool reads; of more they take turns by the minute."""


def in_turn(names: Sequence[str], *, now: datetime) -> tuple[str, ...]:
    """Return the arrays that one look at a pool reads: all, or those whose turn it is in this minute."""
    if len(names) <= MOST_READ:
        return tuple(names)
    first = int(now.timestamp() // 60) * MOST_READ % len(names)
    return tuple(names[(first + offset) % len(names)] for offset in range(MOST_READ))


def next_tasks(array: Array) -> tuple[int, ...]:
    """Return the positions of the tasks to make jobs of now; empty if there are enough, or none may be."""
    template = array.template
    if array.held or template.waits_for_others or template.state is not JobState.PENDING:
        return ()
    room = MOST_WAITING_JOBS - array.jobs.waiting - array.jobs.held
    if array.at_most is not None:
        room = min(room, array.at_most - array.jobs.total)
    return first_positions(array.unexpanded, min(room, AT_ONCE)) if room > 0 else ()


def expanded(array: Array, chosen: tuple[int, ...]) -> Array:
    """Return the array once these tasks exist as waiting jobs."""
    jobs = replace(array.jobs, waiting=array.jobs.waiting + len(chosen))
    return replace(array, unexpanded=array.unexpanded & ~bits_of(chosen), jobs=jobs, ver=array.ver + 1)


def equal_failures(array: Array) -> str | None:
    """Return the class of the last failures if the array is to be held for them; None if it is not.

    One completed task shows that the request is sound, so from then on failures hold nothing.
    """
    most = array.stop_after_failures
    if not most or array.held or array.ends.completed or len(array.recent) < most or array.is_ended:
        return None
    last = array.recent[-most:]
    return last[0] if last[0] and len(set(last)) == 1 else None


def needs_trimming(array: Array) -> bool:
    """Tell whether the row keeps more ends than can count."""
    return len(array.recent) > MOST_RECENT


def ended_array(array: Array) -> EndedParent:
    """Describe an array that has ended to the jobs that wait for it."""
    end, template = array.end, array.template
    assert end is not None, array.name
    own = Root(name=array.name, entry_id=array.entry_id, team=template.spec.team, message=end_text(array))
    passed_on = template.after.root if array.ended_for_parent and template.after else None
    return EndedParent(entry_id=array.entry_id, end=end, root=passed_on or own)


def end_text(array: Array) -> str:
    """Say how an array ended: ``failed: 3 of 64 tasks failed: 7, 8, 31``."""
    parts = [text for text in (_counted(array, "failed"), _counted(array, "stopped")) if text]
    return f"{array.state}: {'; '.join(parts)}" if parts else array.state.value


def _counted(array: Array, kind: str) -> str:
    bits: int = getattr(array.ends, kind)
    if not bits:
        return ""
    verb = "failed" if kind == "failed" else "were stopped"
    shown = [array.indices[position] for position in first_positions(bits, MOST_QUOTED_INDICES)]
    left = bits.bit_count() - len(shown)
    rest = f" and {left} more" if left else ""
    listed = ", ".join(map(str, shown))
    return f"{bits.bit_count()} of {len(array.indices)} tasks {verb}: {listed}{rest}"
