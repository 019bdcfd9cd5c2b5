"""DependencyStore and DependencyReader over ``Tables``."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

from trainmaster.core.arrays.tasks import parse_task_name
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.end_conditions import Condition, Dependent
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import OutboxMessage

from tests.memory.history import remember_events
from tests.memory.tables import Tables


def require_parents(tables: Tables, conditions: Iterable[Condition]) -> None:
    """Raise LostRaceError where an open parent is not as it was read."""
    for condition in conditions:
        if condition.array is not None and condition.end is None:
            array = tables.arrays.get(condition.array)
            is_whole = condition.job == condition.array
            if array is None or array.ended_at is not None:
                raise LostRaceError(f"{condition.array} has ended")
            if not is_whole and array.ver != condition.array_ver:
                raise LostRaceError(f"{condition.array} is not as it was read")
            continue
        parent = tables.jobs.get(condition.job)
        if condition.end is None and (
            parent is None or parent.spec.entry_id != condition.entry_id or parent.is_final
        ):
            raise LostRaceError(f"{condition.job} is not as it was read")


def put_dependents(
    tables: Tables, job: Job, conditions: Iterable[Condition], *, is_array: bool = False
) -> None:
    child = Dependent(
        name=job.name, entry_id=job.spec.entry_id, team=job.spec.team, is_array=is_array or None
    )
    for condition in conditions:
        tables.dependents[condition.entry_id][job.name] = child
        if condition.end is None and condition.array is not None:
            _mark_array(tables, condition, condition.array)
        elif condition.end is None:
            tables.jobs[condition.job] = replace(tables.jobs[condition.job], has_dependents=True)


def _mark_array(tables: Tables, condition: Condition, name: str) -> None:
    array, task = tables.arrays[name], parse_task_name(condition.job)
    if condition.job == name or task is None:
        template = replace(array.template, has_dependents=True)
        tables.arrays[name] = replace(array, template=template)
    else:
        tables.arrays[name] = replace(array, awaited=array.awaited | {task.index}, ver=array.ver + 1)


class MemoryDependentReads:
    """DependencyReader."""

    _tables: Tables

    def dependents(self, parent_entry_id: str, *, after: str, limit: int) -> tuple[Dependent, ...]:
        children = self._tables.dependents[parent_entry_id]
        return tuple(children[name] for name in sorted(children) if name > after)[:limit]

    def dependents_count(self, parent_entry_id: str) -> int:
        return len(self._tables.dependents[parent_entry_id])

    def graph_version(self) -> int:
        return self._tables.graph_version


class MemoryDependentWrites:
    """DependencyStore."""

    _tables: Tables
    _commit: Callable[..., tuple[Job, ...]]

    def commit_conditions(self, change: Change, *, graph_version: int, at: datetime) -> Job:
        if graph_version != self._tables.graph_version:
            raise LostRaceError("the conditions of a job changed")
        before, after = _by_entry(change.before), _by_entry(change.after)
        new = [condition for entry_id, condition in after.items() if entry_id not in before]
        require_parents(self._tables, new)
        (job,) = self._commit([change], at=at)
        for entry_id in before.keys() - after.keys():
            self._tables.dependents[entry_id].pop(job.name, None)
        put_dependents(self._tables, job, new)
        self._tables.graph_version += 1
        return job

    def leave_for_root(self, pool: str, message: OutboxMessage, *, root_entry_id: str, team: str) -> bool:
        if (root_entry_id, team) in self._tables.notified_roots:
            return False
        self._tables.notified_roots.add((root_entry_id, team))
        self._tables.messages[pool, message.id] = message
        remember_events(self._tables, [message])
        return True

    def note_released(self, pool: str, message: OutboxMessage, *, upto: str) -> None:
        stored = self._tables.messages.get((pool, message.id))
        if stored is not None:
            self._tables.messages[pool, message.id] = replace(stored, upto=upto, lease_until=None)


def _by_entry(job: Job) -> dict[str, Condition]:
    return {} if job.after is None else {condition.entry_id: condition for condition in job.after.conditions}
