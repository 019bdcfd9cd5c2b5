"""The policy in force, and the claims it voids."""

from dataclasses import replace

import pytest
from trainmaster.errors import LostRaceError
from trainmaster.jobs import JobState

from tests.builders import claimed
from tests.integration.ports.plane import DOCUMENT, Plane

S = JobState


def test_before_the_first_policy_there_is_the_empty_one(plane: Plane) -> None:
    assert plane.policy.revision == 1
    assert plane.policies.current() == plane.policy
    with pytest.raises(LostRaceError):
        plane.policies.put({}, pools=[], replaces=replace(plane.policy, revision=0, version=0))


def test_of_two_admins_the_slower_loses_and_a_pause_keeps_the_document(plane: Plane) -> None:
    second = plane.policies.put({"version": 1}, pools=["main"], replaces=plane.policy)
    with pytest.raises(LostRaceError):
        plane.policies.put({}, pools=["main"], replaces=plane.policy)
    with pytest.raises(LostRaceError):
        plane.policies.set_paused(True, pools=["main"], replaces=plane.policy)
    paused = plane.policies.set_paused(True, pools=["main"], replaces=second)
    assert plane.policies.current() == paused
    assert (paused.revision, paused.version, paused.document, paused.paused) == (2, 3, {"version": 1}, True)
    assert paused.seal_key == plane.policy.seal_key


def test_a_pool_that_was_not_told_of_the_policy_refuses_its_claims(plane: Plane) -> None:
    one = plane.submitted("a")
    second = plane.policies.put(DOCUMENT, pools=[], replaces=plane.policy)
    with pytest.raises(LostRaceError):
        plane.change(one, claimed(one), policy_version=second.version)
    plane.change(one, claimed(one), policy_version=plane.policy.version)
    assert plane.job("a").state is S.STARTING
