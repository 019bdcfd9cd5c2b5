"""The policy in force, and the claims it voids."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from trainmaster.core.errors import LostRaceError, TeamLimit, TeamLimitError
from trainmaster.core.history.past_records import PolicyPut
from trainmaster.core.jobs.model import JobState
from trainmaster.core.lifecycle import steps
from trainmaster.core.policy import DEFAULTS, EARLIER_DEFAULTS, Limits, PoolPolicy, parse_policy
from trainmaster.core.records import Admission, SubmissionFreeze

from tests.builders import NOON, claimed, job, minutes
from tests.integration.ports.plane import DOCUMENT, WHY, Plane

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


def test_a_put_marks_its_defaults_and_a_pause_keeps_the_mark(plane: Plane) -> None:
    earlier = replace(plane.policy, defaults=EARLIER_DEFAULTS)
    assert plane.policies.set_paused(True, pools=[], replaces=earlier).defaults == EARLIER_DEFAULTS
    paused = plane.policies.current()
    assert paused.defaults == EARLIER_DEFAULTS
    put = plane.policies.put({}, pools=[], replaces=paused)
    marks = [one.defaults for one in (put, plane.policies.current(), plane.policies.revision(2)) if one]
    assert marks == [DEFAULTS, DEFAULTS, DEFAULTS]


def test_a_revision_says_who_put_it_in_force_and_when_and_a_pause_keeps_it(plane: Plane) -> None:
    put = PolicyPut(at=NOON, by="arn:aws:iam::111122223333:user/ada")
    first = plane.policies.put({}, pools=[], replaces=plane.policy, history=put)
    second = plane.policies.put(
        {}, pools=[], replaces=plane.policies.set_paused(True, pools=[], replaces=first)
    )
    kept = plane.policies.revision(2)
    assert kept is not None
    assert (kept.put_at, kept.put_by) == (NOON, "arn:aws:iam::111122223333:user/ada")
    assert (second.put_at, second.put_by) == (None, ""), "nobody said who"


def test_a_pool_that_was_not_told_of_the_policy_refuses_its_claims(plane: Plane) -> None:
    one = plane.submitted("a")
    second = plane.policies.put(DOCUMENT, pools=[], replaces=plane.policy)
    with pytest.raises(LostRaceError):
        plane.change(one, claimed(one), policy_version=second.version)
    plane.change(one, claimed(one), policy_version=plane.policy.version)
    assert plane.job("a").state is S.STARTING


def test_a_policy_tells_more_pools_than_a_transaction_takes_and_no_pool_an_older_one(plane: Plane) -> None:
    pools = [f"pool-{number:03d}" for number in range(201)]
    second = plane.policies.put(DOCUMENT, pools=pools, replaces=plane.policy)
    assert {told(plane, pool) for pool in pools} == {second.version}
    plane.store.tell_policy(pools[-1], second.version + 1)
    plane.store.tell_policy(pools[-1], second.version)
    assert told(plane, pools[-1]) == second.version + 1


def told(plane: Plane, pool: str) -> int | None:
    policy = parse_policy({})
    written = PoolPolicy(name=pool, capacity={})
    return plane.reader.snapshot(written, policy=policy, paused=False, now=NOON).policy_version


def admission(plane: Plane, version: int | None = None, **limits: int) -> Admission:
    written: dict[str, Any] = {**limits}
    return Admission(policy_version=version or plane.policy.version, limits=Limits(**written))


def freeze(plane: Plane, *, at: datetime = NOON, version: int | None = None) -> SubmissionFreeze:
    return SubmissionFreeze(
        pools=("main",),
        teams=("default",),
        version=version or plane.policy.version,
        at=at,
        until=at + minutes(1),
    )


def submit(plane: Plane, name: str, allowed: Admission, **fields: Any) -> None:
    plane.store.submit(job(name, entry_id=f"01{name}", **fields), b"{}", allowed)


def test_each_revision_is_kept_as_it_was_put_in_force(plane: Plane) -> None:
    second = plane.policies.put({"version": 1}, pools=["main"], replaces=plane.policy)
    plane.policies.set_paused(True, pools=["main"], replaces=second)
    assert plane.policies.revision(1) == plane.policy
    assert plane.policies.revision(2) == second
    assert plane.policies.revision(3) is None


def test_a_team_has_at_most_so_many_jobs_waiting(plane: Plane) -> None:
    two = admission(plane, max_waiting=2)
    submit(plane, "a", two)
    submit(plane, "b", two)
    with pytest.raises(TeamLimitError) as refused:
        submit(plane, "c", two)
    assert refused.value.limit is TeamLimit.MAX_WAITING
    assert (plane.reader.job("c"), plane.reader.alias("c")) == (None, None)
    submit(plane, "d", two, team="vision")
    held = plane.change(plane.job("a"), steps.held(plane.job("a"), WHY))
    with pytest.raises(TeamLimitError):
        submit(plane, "c", two)
    plane.change(held, steps.cancelled(held, reason=WHY, now=NOON))
    submit(plane, "c", two)


def test_a_team_submits_at_most_so_often_in_a_minute(plane: Plane) -> None:
    one = admission(plane, max_submissions_per_minute=1)
    submit(plane, "a", one, submitted_at=NOON + timedelta(seconds=1))
    with pytest.raises(TeamLimitError) as refused:
        submit(plane, "b", one, submitted_at=NOON + timedelta(seconds=59))
    assert refused.value.limit is TeamLimit.MAX_SUBMISSIONS_PER_MINUTE
    submit(plane, "b", one, submitted_at=NOON + timedelta(seconds=60))
    submit(plane, "c", one, team="vision")


def test_changes_of_jobs_count_with_submissions(plane: Plane) -> None:
    def change(team: str, second: int, most: int = 2) -> bool:
        return plane.store.count_change("main", team, most=most, at=NOON + timedelta(seconds=second))

    assert change("default", 1)
    two = admission(plane, max_submissions_per_minute=2)
    submit(plane, "a", two, submitted_at=NOON + timedelta(seconds=2))
    with pytest.raises(TeamLimitError):
        submit(plane, "b", two, submitted_at=NOON + timedelta(seconds=3))
    assert not change("default", 59)
    assert change("default", 59, most=3), "what was refused was not counted"
    assert change("vision", 59)
    assert change("default", 60)


def test_a_name_in_use_goes_before_every_limit(plane: Plane) -> None:
    one = admission(plane, max_waiting=1, max_submissions_per_minute=1)
    submit(plane, "a", one)
    with pytest.raises(LostRaceError):
        submit(plane, "a", one)


def test_a_closed_pool_takes_nobody_who_was_judged_by_the_old_policy(plane: Plane) -> None:
    plane.policies.close(freeze(plane))
    with pytest.raises(LostRaceError):
        submit(plane, "a", admission(plane))
    submit(plane, "b", admission(plane, plane.policy.version + 1))
    submit(plane, "c", admission(plane), team="vision")
    submit(plane, "d", admission(plane), pool="other")


def test_a_freeze_ends_when_it_is_taken_back_or_over(plane: Plane) -> None:
    first = freeze(plane)
    plane.policies.close(first)
    with pytest.raises(LostRaceError):
        submit(plane, "a", admission(plane), submitted_at=NOON + timedelta(seconds=59))
    submit(plane, "a", admission(plane), submitted_at=NOON + minutes(1))
    plane.policies.reopen(first)
    submit(plane, "b", admission(plane))


def test_a_pool_is_closed_by_one_at_a_time(plane: Plane) -> None:
    first = freeze(plane)
    plane.policies.close(first)
    with pytest.raises(LostRaceError):
        plane.policies.close(freeze(plane, at=NOON + timedelta(seconds=30)))
    later = freeze(plane, at=NOON + minutes(1))
    plane.policies.close(later)
    plane.policies.reopen(first)  # not its own any more
    with pytest.raises(LostRaceError):
        submit(plane, "a", admission(plane), submitted_at=NOON + minutes(1))
    plane.policies.close(freeze(plane, at=NOON + minutes(1.5), version=plane.policy.version + 1))


def test_a_text_is_kept_with_its_revision_alone(plane: Plane) -> None:
    second = plane.policies.put({}, text="{} # none", pools=["main"], replaces=plane.policy)
    assert plane.policies.revision(2) == second
    assert second.text == "{} # none"
    current = plane.policies.current()
    assert current.text is None
    third = plane.policies.put({}, pools=["main"], replaces=current)
    assert plane.policies.revision(3) == third
    assert third.text is None
