"""What passes read and write of many jobs at once."""

from dataclasses import replace

from trainmaster.core.errors import LostRaceError
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.plan_reasons import ToldReasons

from tests.builders import NOON
from tests.integration.ports.plane import WHY, Plane


def test_jobs_to_start_come_with_their_requests_and_without_who_is_gone(plane: Plane) -> None:
    jobs = {name: plane.submitted(name) for name in ("a", "b")}
    expected = {name: (one, {"TrainingJobName": name}) for name, one in jobs.items()}
    assert plane.reader.to_start(["a", "nobody", "b"]) == expected
    assert plane.reader.to_start([]) == {}


def test_of_changes_written_together_those_whose_job_moved_on_are_left_out(plane: Plane) -> None:
    first, second = plane.submitted("a"), plane.submitted("b")
    plane.change(second, steps.held(second, WHY))
    changes = [Change(before=one, after=replace(one, waiting=WHY)) for one in (first, second)]
    lost = plane.store.commit_each(changes, at=NOON)
    assert {name: LostRaceError for name, error in lost.items() if isinstance(error, LostRaceError)} == {
        "b": LostRaceError
    }
    assert plane.job("a") == replace(first, waiting=WHY, ver=1)
    assert plane.job("b").is_parked
    assert plane.store.commit_each([], at=NOON) == {}


def test_what_candidates_heard_is_kept_and_of_two_who_note_at_once_nothing_is(plane: Plane) -> None:
    nothing = plane.store.told_reasons("main")
    assert nothing == ToldReasons()
    plane.store.note_told("main", replace(nothing, codes={"a": (0, "capacity")}))
    read = plane.store.told_reasons("main")
    assert read.codes == {"a": (0, "capacity")}
    plane.store.note_told("main", replace(read, codes={"a": (1, "quota")}))
    assert plane.store.told_reasons("main").codes == {"a": (1, "quota")}
    plane.store.note_told("main", replace(read, codes={"a": (2, "capacity")}))
    assert plane.store.told_reasons("main").codes == {}
