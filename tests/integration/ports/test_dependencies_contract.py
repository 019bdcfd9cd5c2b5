"""Dependents of a submission, the mark of a parent, changes of conditions, messages of a root."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import Condition, ConditionKind, Dependencies, Dependent, ParentEnd
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.dependents import ended_parent, with_conditions
from trainmaster.core.outbox.messages import MessageKind, Notice, NoticeKind, OutboxMessage

from tests.builders import NOON, job, minutes, pool
from tests.integration.ports.plane import Plane

S = JobState
WHY = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped")


def condition(parent: Job, *, end: ParentEnd | None = None) -> Condition:
    return Condition(
        kind=ConditionKind.AFTER_OK,
        job=parent.name,
        entry_id=parent.spec.entry_id,
        team=parent.spec.team,
        end=end,
    )


def child_of(name: str, *parents: Job, **ends: Any) -> Job:
    """A job that waits for others, not stored yet."""
    new = job(name, entry_id=f"01{name}")
    after = Dependencies(conditions=tuple(condition(parent, **ends) for parent in parents))
    return with_conditions(new, after, pool=pool(), now=NOON)


def cancelled(plane: Plane, one: Job) -> Job:
    return plane.change(one, steps.cancelled(one, reason=WHY, now=NOON + minutes(1)))


def test_a_child_is_stored_parked_and_among_the_dependents(plane: Plane) -> None:
    parent = plane.submitted("parent")
    child = child_of("child", parent)
    plane.store.submit(child, b"{}")
    assert plane.reader.job("child") == child
    assert plane.reader.job("parent") == replace(parent, has_dependents=True)
    own = Dependent(name="child", entry_id="01child", team="default")
    assert plane.reader.dependents(parent.spec.entry_id, after="", limit=9) == (own,)
    assert plane.reader.dependents(parent.spec.entry_id, after="child", limit=9) == ()
    assert plane.reader.dependents_count(parent.spec.entry_id) == 1
    assert [entry.name for entry in plane.snapshot().waiting] == ["parent"]
    assert [entry.name for entry in plane.reader.parked("main", after=None, limit=9)] == ["child"]
    assert plane.reader.queue_length("main") == 1


def test_many_dependents_come_by_name_in_pages(plane: Plane) -> None:
    parent = plane.submitted("parent")
    for name in ("c", "a", "b"):
        plane.store.submit(child_of(name, parent), b"{}")
    first = plane.reader.dependents(parent.spec.entry_id, after="", limit=2)
    assert [child.name for child in first] == ["a", "b"]
    rest = plane.reader.dependents(parent.spec.entry_id, after="b", limit=2)
    assert [child.name for child in rest] == ["c"]
    assert plane.reader.dependents_count(parent.spec.entry_id) == 3


def test_a_child_of_a_parent_that_has_ended_meanwhile_is_not_stored(plane: Plane) -> None:
    parent = plane.submitted("parent")
    child = child_of("child", parent)
    cancelled(plane, parent)
    with pytest.raises(LostRaceError):
        plane.store.submit(child, b"{}")
    assert plane.reader.job("child") is None
    assert plane.reader.dependents(parent.spec.entry_id, after="", limit=9) == ()


def test_a_child_of_another_submission_of_the_name_is_not_stored(plane: Plane) -> None:
    parent = plane.submitted("parent")
    other = replace(parent, spec=replace(parent.spec, entry_id="01other"))
    with pytest.raises(LostRaceError):
        plane.store.submit(child_of("child", other), b"{}")


def test_an_end_that_was_decided_without_the_child_in_sight_is_not_written(plane: Plane) -> None:
    parent = plane.submitted("parent")
    plane.store.submit(child_of("child", parent), b"{}")
    with pytest.raises(LostRaceError):
        cancelled(plane, parent)
    seen = plane.reader.job("parent")
    assert seen is not None
    ended = cancelled(plane, seen)
    (message,) = [
        one for one in plane.store.messages("main", limit=9) if one.kind is MessageKind.RELEASE_DEPENDENTS
    ]
    assert (message.parent, message.upto) == (ended_parent(ended), None)


def test_a_job_without_dependents_leaves_no_such_message(plane: Plane) -> None:
    cancelled(plane, plane.submitted("alone"))
    kinds = {one.kind for one in plane.store.messages("main", limit=9)}
    assert MessageKind.RELEASE_DEPENDENTS not in kinds


def test_how_far_a_release_went_is_kept_and_its_lease_is_over(plane: Plane) -> None:
    parent = ended_parent(job("parent", state=S.STOPPED))
    message = OutboxMessage(id="#dependents#1", kind=MessageKind.RELEASE_DEPENDENTS, at=NOON, parent=parent)
    plane.store.leave("main", [message])
    assert plane.store.take("main", message, until=NOON + minutes(3), now=NOON)
    plane.store.note_released("main", message, upto="child-7")
    assert plane.store.messages("main", limit=9) == (replace(message, upto="child-7"),)
    plane.store.done("main", message)
    plane.store.note_released("main", message, upto="child-9")
    assert plane.store.messages("main", limit=9) == ()


def test_a_root_is_reported_to_a_team_once(plane: Plane) -> None:
    notice = Notice(kind=NoticeKind.DEPENDENTS_ENDED, team="default", what="It ended.")
    message = OutboxMessage(id="1", kind=MessageKind.TELL, at=NOON, notice=notice)
    assert plane.store.leave_for_root("main", message, root_entry_id="01root", team="default")
    plane.store.done("main", message)
    assert not plane.store.leave_for_root("main", message, root_entry_id="01root", team="default")
    assert plane.store.messages("main", limit=9) == ()
    assert plane.store.leave_for_root("main", message, root_entry_id="01root", team="vision")


def test_other_conditions_move_a_child_from_parent_to_parent(plane: Plane) -> None:
    first, second = plane.submitted("first"), plane.submitted("second")
    child = child_of("child", first)
    plane.store.submit(child, b"{}")
    after = Dependencies(conditions=(condition(second),))
    moved = Change(before=child, after=replace(child, after=after))
    assert plane.reader.graph_version() == 0
    written = plane.store.commit_conditions(moved, graph_version=0, at=NOON)
    assert plane.reader.job("child") == written == replace(child, after=after, ver=1)
    assert plane.reader.dependents(first.spec.entry_id, after="", limit=9) == ()
    assert plane.reader.dependents_count(first.spec.entry_id) == 0
    assert [one.name for one in plane.reader.dependents(second.spec.entry_id, after="", limit=9)] == ["child"]
    assert plane.reader.graph_version() == 1


def test_of_two_changes_of_conditions_at_once_one_is_not_written(plane: Plane) -> None:
    first, second = plane.submitted("first"), plane.submitted("second")
    children = [child_of(name, first) for name in ("a", "b")]
    for child in children:
        plane.store.submit(child, b"{}")
    after = Dependencies(conditions=(condition(second),))
    changes = [Change(before=child, after=replace(child, after=after)) for child in children]
    plane.store.commit_conditions(changes[0], graph_version=0, at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.commit_conditions(changes[1], graph_version=0, at=NOON)
    assert plane.reader.job("b") == children[1]


def test_a_parent_that_ended_meanwhile_takes_no_further_child(plane: Plane) -> None:
    first, second = plane.submitted("first"), plane.submitted("second")
    child = child_of("child", first)
    plane.store.submit(child, b"{}")
    cancelled(plane, second)
    moved = replace(child, after=Dependencies(conditions=(condition(second),)))
    with pytest.raises(LostRaceError):
        plane.store.commit_conditions(Change(before=child, after=moved), graph_version=0, at=NOON)
    assert plane.reader.graph_version() == 0


def test_a_child_whose_conditions_hold_comes_into_the_queue(plane: Plane) -> None:
    parent = plane.submitted("parent")
    child = child_of("child", parent)
    plane.store.submit(child, b"{}")
    plane.change(child, with_conditions(child, None, pool=pool(), now=NOON + minutes(9)))
    assert [entry.name for entry in plane.snapshot().waiting] == ["parent", "child"]
    assert plane.reader.parked("main", after=None, limit=9) == ()
    assert plane.reader.queue_length("main") == 2
