"""What is written is counted, once; what was not written is not."""

import pytest
from trainmaster.core.errors import LostRaceError
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change

from tests.builders import NOON, claimed
from tests.integration.ports.plane import Plane, ended


def test_each_change_of_a_commit_is_counted(plane: Plane) -> None:
    jobs = [plane.submitted(name) for name in ("a", "b")]
    claims = [plane.change(one, claimed(one)) for one in jobs]
    assert plane.counts() == []
    started = [
        Change(before=one, after=steps.recorded(one, training_job_arn="arn:x", now=NOON)) for one in claims
    ]
    plane.store.commit(started, at=NOON)
    assert plane.counts() == [("Starts", "main"), ("WaitSeconds", "default")] * 2


def test_the_loser_of_a_race_counts_nothing(plane: Plane) -> None:
    one, other = plane.running("a"), plane.running("b")
    plane.counts()
    plane.store.commit([ended(one, "Failed")], at=NOON)
    assert plane.counts() == [("Failures", "unknown"), ("WastedGpuHours", "failures")]
    with pytest.raises(LostRaceError):
        plane.store.commit([ended(one, "Failed")], at=NOON)
    with pytest.raises(LostRaceError):
        plane.store.commit([ended(other, "Failed"), ended(one, "Failed")], at=NOON)
    assert plane.counts() == []
