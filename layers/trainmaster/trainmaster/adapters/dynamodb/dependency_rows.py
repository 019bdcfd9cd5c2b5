"""Rows of dependencies: under each parent's submission its children, how many they are, and who was notified.

| row | pk | sk |
|---|---|---|
| job that waits, or waited, for a submission | ``A#entry`` | ``name`` |
| how many there are | ``A#entry`` | ``#count`` |
| team that was notified of what ended with it | ``A#entry`` | ``#notified#team`` |
| changes of conditions in the stack | ``A#`` | ``version`` |

A child's row is written by the transaction that stores the child, on condition that no parent has ended
otherwise than it was read, and marks the parent's own row. An end of a job without the mark is conditional on
there being none, so either the child knows of the end or the end leaves a message for the child.
"""

from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice

from trainmaster.adapters.dynamodb import layout
from trainmaster.adapters.dynamodb.attribute_values import to_attributes
from trainmaster.adapters.dynamodb.calls import ConditionsFailedError, SortKeys, key_attributes
from trainmaster.adapters.dynamodb.codec import decode, encode, iso
from trainmaster.adapters.dynamodb.guard import GuardedReads, Item, require
from trainmaster.adapters.dynamodb.history_rows import event_rows
from trainmaster.adapters.dynamodb.lane_rows import LaneRows
from trainmaster.adapters.dynamodb.stored_names import stored_name
from trainmaster.adapters.dynamodb.updates import Update
from trainmaster.adapters.dynamodb.writes import Operation, Writes
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.end_conditions import Condition, Dependent
from trainmaster.core.jobs.model import FINAL, Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox.messages import OutboxMessage

LONGEST_WAIT = timedelta(days=365)
"""How long a parent may take to its end, at least, before the table forgets who waits for it."""
COUNT = "dependents"
"""Attribute of the count row of a parent."""
_BEFORE_NAMES = "#~"
"""Behind the sort keys of what is no child, before the first name."""
_GRAPH: layout.Key = ("A#", "version")
"""Rises with every change of a job's conditions after its submission."""


def dependent_key(parent_entry_id: str, child: str) -> layout.Key:
    return (f"A#{parent_entry_id}", child)


def count_key(parent_entry_id: str) -> layout.Key:
    return dependent_key(parent_entry_id, "#count")


def notified_key(root_entry_id: str, team: str) -> layout.Key:
    return dependent_key(root_entry_id, f"#notified#{team}")


def of_new_conditions(
    job: Job, conditions: Iterable[Condition], writes: Writes, *, at: datetime
) -> list[Operation]:
    """The child among the dependents of each parent, provided that no parent has ended since it was read."""
    ttl = _expires(writes, at)
    operations: list[Operation] = []
    for condition in conditions:
        if condition.end is None:
            operations.append(_marked_parent(condition, writes))
        child = Dependent(name=job.name, entry_id=job.spec.entry_id, team=job.spec.team)
        operations.append(
            writes.put(dependent_key(condition.entry_id, job.name), {**encode(child), "ttl": ttl})
        )
        operations.append(_counted(condition, writes, 1, ttl=ttl))
    return operations


def of_dropped_conditions(
    job: Job, conditions: Iterable[Condition], writes: Writes, *, at: datetime
) -> list[Operation]:
    """The child is no dependent of these parents any more."""
    ttl = _expires(writes, at)
    operations: list[Operation] = []
    for condition in conditions:
        key = key_attributes(dependent_key(condition.entry_id, job.name))
        operations.append({"Delete": {"TableName": writes.table, "Key": key}})
        operations.append(_counted(condition, writes, -1, ttl=ttl))
    return operations


def _expires(writes: Writes, at: datetime) -> int:
    """Long after the child: a parent that is held for months still finds its children."""
    return writes.retention.of_line(at + LONGEST_WAIT)


def _marked_parent(condition: Condition, writes: Writes) -> Operation:
    """The parent as it was read, with the mark that makes its end leave a message."""
    names = {f":f{number}": state.value for number, state in enumerate(sorted(FINAL))}
    return {
        "Update": {
            "TableName": writes.table,
            "Key": key_attributes(layout.job_key(condition.job)),
            "UpdateExpression": "SET has_dependents = :yes",
            "ConditionExpression": f"#spec.entry_id = :entry AND NOT (#state IN ({', '.join(names)}))",
            "ExpressionAttributeNames": {"#spec": "spec", "#state": "state"},
            "ExpressionAttributeValues": to_attributes({":yes": True, ":entry": condition.entry_id, **names}),
        }
    }


def _counted(condition: Condition, writes: Writes, count: int, *, ttl: int) -> Operation:
    update = Update(put={"ttl": ttl})
    update.add[COUNT] += count
    return writes.update(count_key(condition.entry_id), update)


def _changed_conditions(change: Change) -> tuple[list[Condition], list[Condition]]:
    """Conditions on submissions that are new to the job, and those on submissions that it dropped."""
    before, after = _by_entry(change.before), _by_entry(change.after)
    new = [condition for entry_id, condition in after.items() if entry_id not in before]
    gone = [condition for entry_id, condition in before.items() if entry_id not in after]
    return new, gone


def _by_entry(job: Job) -> dict[str, Condition]:
    return {} if job.after is None else {condition.entry_id: condition for condition in job.after.conditions}


class DependencyRows(LaneRows):
    """Reads and writes dependencies for passes and the API; see ``DependencyStore``."""

    def commit_conditions(self, change: Change, *, graph_version: int, at: datetime) -> Job:
        versioned = change.versioned
        graph = Update()
        graph.add["version"] += 1
        unchanged = "#n = :v" if graph_version else "attribute_not_exists(#n) OR #n = :v"
        graph.conditions.append((unchanged, "version", graph_version))
        new, gone = _changed_conditions(versioned)
        operations = self._writes.of([versioned], at=at, condition=None)
        operations += of_new_conditions(versioned.after, new, self._writes, at=at)
        self._transactions.write([*operations, self._writes.update(_GRAPH, graph)])
        # A second transaction, as 20 new parents and 20 old ones do not fit into one. Where that is lost the
        # child stays among the dependents of a job that it has no condition on, whose end changes nothing.
        with suppress(LostRaceError):
            self._drop_dependents(versioned.after, gone, at=at)
        return versioned.after

    def _drop_dependents(self, job: Job, gone: list[Condition], *, at: datetime) -> None:
        """Only while the job is as it was written: a later change may have put it back among them."""
        if gone:
            unchanged = Update(conditions=[("#n = :v", "ver", job.ver)])
            check = self._writes.update(layout.job_key(job.name), unchanged)
            dropped = of_dropped_conditions(job, gone, self._writes, at=at)
            self._transactions.write([check, *dropped])

    def leave_for_root(self, pool: str, message: OutboxMessage, *, root_entry_id: str, team: str) -> bool:
        marker = {"at": iso(message.at), "ttl": self._writes.retention.of_line(message.at)}
        key = notified_key(root_entry_id, team)
        noted = self._writes.put(key, marker, only_if="attribute_not_exists(pk)")
        events = self._writes.remembered(event_rows([message]))
        with suppress(ConditionsFailedError):
            self._transactions.write([noted, self._writes.message(pool, message), *events])
            return True
        return False

    def note_released(self, pool: str, message: OutboxMessage, *, upto: str) -> None:
        """Another pass that has gone further meanwhile is set back: releasing a child twice does no harm."""
        self._rows.change(
            "update_item",
            Key=key_attributes(layout.message_key(pool, message.id)),
            UpdateExpression="SET upto = :upto REMOVE #lease",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeNames={"#lease": stored_name(OutboxMessage, "lease_until")},
            ExpressionAttributeValues=to_attributes({":upto": upto}),
        )


class DependencyReads(GuardedReads):
    """See ``DependencyReader``."""

    def dependents(self, parent_entry_id: str, *, after: str, limit: int) -> tuple[Dependent, ...]:
        partition, _ = count_key(parent_entry_id)
        behind = SortKeys.behind(after or _BEFORE_NAMES)
        items = islice(self._rows.query(partition, behind, page=limit), limit)
        return tuple(self._understood(items, _dependent_row))

    def dependents_count(self, parent_entry_id: str) -> int:
        row = self._rows.get(count_key(parent_entry_id)) or {}
        return int(row.get(COUNT, 0))

    def graph_version(self) -> int:
        row = self._rows.get(_GRAPH) or {}
        return int(row.get("version", 0))


def _dependent_row(item: Item) -> Dependent:
    child = decode(Dependent, item)
    require(item["sk"] == child.name, f"it is of {child.name}")
    return child
