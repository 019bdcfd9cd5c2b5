"""Every plan: what it may give away, whom it may stop, and that it leaves nobody without an answer."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Vector, fits, total
from trainmaster.core.jobs.model import JobState
from trainmaster.core.planning.actions import KeepWarm, Plan, Preempt, ReleaseWarm, SettleWarm, Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.snapshot import RunningJob, Snapshot, WaitingJob
from trainmaster.core.policy import AtLimit
from trainmaster_client.simulate.engine.idle_plans import may_act

from tests.builders import NOON
from tests.properties.carrying_out import after_stops, carry_out
from tests.properties.pools import Case, always, cases

CODES = {"ahead", "capacity", "quota", "budget", "reservation", "account-limit", "paused"}
ROUNDS = 40
"""More than any pool here needs to come to rest."""


def planned(case: Case) -> Plan:
    return plan(case.snapshot, case.pool, now=NOON)


def starts(decided: Plan) -> list[Start]:
    return [one for one in decided.actions if isinstance(one, Start)]


def preemptions(decided: Plan) -> list[Preempt]:
    return [one for one in decided.actions if isinstance(one, Preempt)]


def steps(case: Case) -> list[tuple[Any, Snapshot, Snapshot]]:
    """Each action of the plan with the pool before and after it; fails where a guard would."""
    walked, snapshot = [], case.snapshot
    for action in planned(case).actions:
        after = carry_out(action, snapshot, now=NOON)
        walked.append((action, snapshot, after))
        snapshot = after
    return walked


# ---- room


@always
@given(cases())
def test_no_start_lifts_what_is_used_and_warm_above_capacity(case: Case) -> None:
    for action, _, after in steps(case):
        if isinstance(action, Start):
            taken = total((after.used, after.warm))
            for capacity in action.shape.vector:
                assert taken[capacity] <= case.capacity.get(capacity, 0)


@always
@given(cases())
def test_every_action_of_a_plan_can_be_carried_out_after_those_before_it(case: Case) -> None:
    assert len(steps(case)) == len(planned(case).actions)


@always
@given(cases(surely="holds"))
def test_nobody_else_starts_in_room_that_is_held(case: Case) -> None:
    for action, _, after in steps(case):
        if isinstance(action, Start) and not action.ends_hold:
            held = total(hold.vector for hold in after.holds)
            for capacity in action.shape.vector:
                left = (
                    case.capacity.get(capacity, 0) - after.used.get(capacity, 0) - after.warm.get(capacity, 0)
                )
                assert left >= held.get(capacity, 0)


@always
@given(cases(surely="warm"))
def test_a_claim_leaves_room_for_all_that_is_warm_or_held_for_others(case: Case) -> None:
    """However much is in use by then: that is what the claim depends on."""
    for action, _, after in steps(case):
        if isinstance(action, Start):
            kept = total((after.warm, *(hold.vector for hold in after.holds)))
            for capacity, count in action.shape.vector.items():
                taken = action.most_used[capacity] + count + kept.get(capacity, 0)
                assert taken <= case.capacity.get(capacity, 0)


@always
@given(cases())
def test_a_paused_pool_starts_and_preempts_nobody(case: Case) -> None:
    paused = replace(case, snapshot=replace(case.snapshot, paused=True))
    decided = planned(paused)
    assert (starts(decided), preemptions(decided)) == ([], [])
    assert {reason.code for reason in decided.reasons.values()} == {"paused"}


@always
@given(cases(surely="limits"))
def test_only_one_start_goes_above_a_learned_limit_and_only_when_that_is_due(case: Case) -> None:
    above: Counter[Capacity] = Counter()
    for action, before, after in steps(case):
        if not isinstance(action, Start):
            continue
        for capacity, limit in case.snapshot.account_limits.items():
            held = [one.used.get(capacity, 0) + one.warm.get(capacity, 0) for one in (before, after)]
            if held[1] > limit.limit and held[1] > held[0]:
                assert limit.until <= NOON
                assert capacity in action.probes
                above[capacity] += 1
    assert all(count == 1 for count in above.values())


# ---- nothing to do


def as_now_placed(snapshot: Snapshot) -> Snapshot:
    """With reservations of which each victim knows for whom it was asked to stop."""
    holds = tuple(replace(hold, victims=()) for hold in snapshot.holds)
    owner = holds[0].preemptor if holds else None
    live = tuple(
        replace(one, preempted_for=owner) if one.state is JobState.PREEMPTING else one
        for one in snapshot.running
    )
    return replace(snapshot, holds=holds, running=live)


@always
@given(st.one_of(cases(plain=True), cases(), cases(surely="holds"), cases(surely="quotas")))
def test_where_nothing_may_be_done_a_plan_does_nothing(case: Case) -> None:
    bare = replace(case.snapshot, warm={}, warm_pools=(), budgets={}, due=())
    warm = replace(case.snapshot, budgets={}, due=())
    for snapshot in (case.snapshot, warm, as_now_placed(warm), bare, as_now_placed(bare)):
        if not may_act(snapshot, case.pool, now=NOON):
            assert plan(snapshot, case.pool, now=NOON).actions == ()


# ---- one decision, with a reason


@always
@given(cases())
def test_each_candidate_is_decided_on_exactly_once(case: Case) -> None:
    decided = planned(case)
    started = [one.job.name for one in starts(decided)]
    preempting = [one.job.name for one in preemptions(decided)]
    candidates = [one.name for one in case.snapshot.waiting]
    assert len(started) == len(set(started))
    assert len(preempting) == len(set(preempting))
    assert set(started) | set(preempting) <= set(candidates)
    assert sorted([*started, *decided.reasons]) == sorted(candidates)


@always
@given(cases())
def test_every_wait_has_a_number_or_a_name_in_its_reason(case: Case) -> None:
    waiting, running = case.snapshot.waiting, case.snapshot.running
    names = [*(one.name for one in waiting), *(one.name for one in running)]
    for reason in planned(case).reasons.values():
        assert reason.code in CODES
        assert re.search(r"\d", reason.message) or any(name in reason.message for name in names)


@always
@given(cases())
def test_no_reason_names_a_job_of_another_team(case: Case) -> None:
    everybody: list[WaitingJob | RunningJob] = [*case.snapshot.waiting, *case.snapshot.running]
    own = {
        one.name: {other.name for other in everybody if other.team == one.team}
        for one in case.snapshot.waiting
    }
    for name, reason in planned(case).reasons.items():
        said = set(re.findall(r"\b[wr]\d\b", reason.message))
        assert said <= own[name]


@always
@given(cases(), st.randoms(use_true_random=False))
def test_the_order_in_which_the_table_was_read_changes_nothing(case: Case, dice: Any) -> None:
    def shuffled(rows: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dice.sample(rows, len(rows)))

    read = replace(
        case.snapshot,
        waiting=shuffled(case.snapshot.waiting),
        running=shuffled(case.snapshot.running),
        warm_pools=shuffled(case.snapshot.warm_pools),
        holds=shuffled(case.snapshot.holds),
    )
    other = planned(replace(case, snapshot=read))
    first = planned(case)
    assert sorted(map(repr, other.actions)) == sorted(map(repr, first.actions))
    assert other.reasons == first.reasons


@always
@given(cases())
def test_plans_carried_out_one_after_the_other_come_to_rest(case: Case) -> None:
    """With every stop at its end at once; whoever was preempted is not put back here."""
    for _ in range(ROUNDS):
        decided = planned(case)
        if not decided.actions:
            return
        snapshot = case.snapshot
        for action in decided.actions:
            snapshot = carry_out(action, snapshot, now=NOON)
        case = replace(case, snapshot=after_stops(snapshot))
    raise AssertionError(decided.actions)


@always
@given(cases())
def test_a_second_look_before_anything_ends_starts_and_stops_nobody_more(case: Case) -> None:
    """Warm pools that the first look gave up, parked jobs it brought back, holds it dropped count again."""
    if case.snapshot.warm_pools or case.snapshot.due or case.snapshot.holds:
        return
    snapshot = case.snapshot
    for action in planned(case).actions:
        snapshot = carry_out(action, snapshot, now=NOON)
    again = planned(replace(case, snapshot=snapshot))
    assert (starts(again), preemptions(again)) == ([], [])


# ---- preemption


@always
@given(cases())
def test_a_preemption_makes_just_the_room_that_its_job_lacks(case: Case) -> None:
    for action, before, _ in steps(case):
        if not isinstance(action, Preempt):
            continue
        asked = action.shape.vector
        free = _free(case, before, besides=action.job.name)
        assert not fits(asked, free), "it fitted anyway"
        coming = total(_leaving(case, before))
        with_all = total((free, coming, *(one.vector for one in action.victims)))
        assert fits(asked, with_all), "stopped, and it does not fit anyway"
        for spared in action.victims:
            others = total((free, coming, *(one.vector for one in action.victims if one is not spared)))
            assert not fits(asked, others), f"{spared.name} was stopped for nothing"


@always
@given(cases())
def test_whoever_is_stopped_may_be_stopped_and_ranks_behind(case: Case) -> None:
    tiers = tiers_of(case)
    rules = case.pool.preemption
    seen: set[str] = set()
    for action in preemptions(planned(case)):
        assert rules.enabled
        for one in action.victims:
            assert one.name not in seen
            seen.add(one.name)
            assert one.state is JobState.RUNNING
            assert one.preemptible
            assert one.preemptions < rules.max_per_job
            assert one.training_since is None or NOON - one.training_since >= rules.min_runtime
            assert one.has_checkpoint or not rules.needs_checkpoint
            mine, theirs = tiers.get(action.job.name, 0), tiers.get(one.name, 0)
            assert (mine, action.job.score, action.job.name) < (theirs, one.score, one.name)
            reclaimed = mine == 0 and theirs == 1 and one.team != action.job.team
            assert reclaimed or action.job.priority >= one.priority + rules.min_priority_gap
            assert reclaimed or mine == theirs or one.team == action.job.team


@always
@given(cases(surely="delay"))
def test_a_preemption_leaves_enough_victims_alone_that_what_frees_itself_is_waited_for(case: Case) -> None:
    delay = case.pool.preemption.preempt_delay
    for action, before, _ in steps(case):
        if isinstance(action, Preempt) and delay:
            soon = [
                one.vector
                for one in before.running
                if one.state is JobState.RUNNING
                and one.expected.ends_by is not None
                and one.expected.ends_by <= NOON + delay
            ]
            free = _free(case, before, besides=action.job.name)
            assert not fits(action.shape.vector, total((free, *soon, *_leaving(case, before))))


# ---- quotas and money


def tiers_of(case: Case) -> dict[str, int]:
    """Each team's nominal quota filled with its jobs, live and waiting, in the order of their scores."""
    if not case.pool.quotas:
        return {}
    tiers: dict[str, int] = {}
    everybody: list[WaitingJob | RunningJob] = [*case.snapshot.waiting, *case.snapshot.running]
    for team in {one.team for one in everybody}:
        quota = case.pool.quotas.get(team)
        left = dict(quota.nominal) if quota else {}
        jobs = [one for one in everybody if one.team == team]
        for one in sorted(jobs, key=lambda job: (job.score, job.name)):
            asked = _on_demand(one.vector)
            tiers[one.name] = 0 if all(left.get(name, 0) >= count for name, count in asked.items()) else 1
            for name, count in asked.items() if tiers[one.name] == 0 else ():
                left[name] -= count
    return tiers


@always
@given(cases(surely="quotas"))
def test_no_team_borrows_more_than_its_limit(case: Case) -> None:
    for action, _, after in steps(case):
        quota = case.pool.quotas.get(action.job.team) if isinstance(action, Start) else None
        if quota is None or quota.borrowing_limit is None:
            continue
        used = total(one.vector for one in after.running if one.team == action.job.team)
        for name, count in _on_demand(action.shape.vector).items():
            limit = quota.borrowing_limit.get(name)
            assert count == 0 or limit is None or used[Capacity(name)] <= quota.nominal.get(name, 0) + limit


@always
@given(cases(plain=True))
def test_the_first_covered_job_never_waits_for_borrowers_that_it_may_stop(case: Case) -> None:
    tiers, rules = tiers_of(case), case.pool.preemption
    order = sorted(case.snapshot.waiting, key=lambda one: (tiers.get(one.name, 0), one.score, one.name))
    first = order[0]
    if (
        not tiers
        or tiers[first.name] == 1
        or len(first.shapes) > 1
        or not rules.enabled
        or rules.preempt_delay
        or rules.cost.enabled
    ):
        return
    asked = first.shapes[0].vector
    borrowers = [
        one
        for one in case.snapshot.running
        if tiers[one.name] == 1 and one.team != first.team and _stoppable(one, case)
    ]
    free = _free(case, case.snapshot, besides=first.name)
    if not fits(asked, total((free, *(one.vector for one in borrowers)))):
        return
    decided = planned(case)
    acted = {one.job.name for one in starts(decided)} | {one.job.name for one in preemptions(decided)}
    stopping = any(one.state in (JobState.PREEMPTING, JobState.STOPPING) for one in case.snapshot.running)
    assert first.name in acted or stopping


@always
@given(cases(surely="money"))
def test_what_a_team_may_cost_stays_within_its_month(case: Case) -> None:
    for action, _, after in steps(case):
        if not isinstance(action, Start) or action.job.team not in case.snapshot.budgets:
            continue
        budget = after.budgets[action.job.team]
        spot = action.shape.capacity_type is CapacityType.SPOT
        if spot and budget.at_limit is AtLimit.SPOT:
            continue
        assert action.charge is not None, "nobody knows what it costs, and the team has a budget"
        assert budget.account.spent + budget.account.reserved <= budget.limit_cents


# ---- warm pools


@always
@given(cases(surely="warm"))
def test_each_warm_pool_is_decided_on_at_most_once_and_taken_by_one_job(case: Case) -> None:
    decided = planned(case)
    kept = [one.warm_pool for one in decided.actions if isinstance(one, KeepWarm | ReleaseWarm | SettleWarm)]
    taken = [one.reuses for one in starts(decided) if one.reuses is not None]
    names = [one.training_job_name for one in (*kept, *taken)]
    assert len(names) == len(set(names))


@always
@given(cases(surely="warm"))
def test_a_job_takes_only_a_warm_pool_that_is_its_own_kind_and_there_for_long_enough(case: Case) -> None:
    for action in starts(planned(case)):
        if action.reuses is not None:
            assert action.reuses.warm_key == action.shape.warm_key
            assert action.reuses.vector == action.shape.vector
            assert not action.reuses.releasing
            assert (action.reuses.expires_at - NOON).total_seconds() > 60
            assert case.pool.warm_pool.keep_alive


@always
@given(cases(surely="warm"))
def test_a_warm_pool_is_never_lengthened_beyond_what_the_policy_allows(case: Case) -> None:
    for action in planned(case).actions:
        if isinstance(action, KeepWarm):
            rules = case.pool.warm_pool
            assert NOON < action.until <= NOON + rules.keep_alive
            assert action.until <= action.warm_pool.since + max(
                rules.max_idle, rules.retain or rules.max_idle
            )
            assert action.until > action.warm_pool.expires_at


@always
@given(cases())
def test_a_job_starts_in_one_of_the_shapes_it_asked_for(case: Case) -> None:
    for action in starts(planned(case)):
        asked = [one.vector for one in action.job.shapes]
        if action.job.choice is Choice.SAGEMAKER:
            assert all(any(part.get(one) == n for part in asked) for one, n in action.shape.vector.items())
        elif action.shape.vector not in asked:
            budget = case.snapshot.budgets[action.job.team]
            assert budget.at_limit is AtLimit.SPOT
            assert action.job.has_checkpoint
            assert action.shape.vector in [_as_spot(one) for one in asked]


# ---- the same things again, stated apart from the planner


def _free(case: Case, snapshot: Snapshot, *, besides: str) -> dict[Capacity, int]:
    held = total(one.vector for one in snapshot.holds if one.preemptor != besides)
    taken = total((snapshot.used, snapshot.warm, held))
    return {one: count - taken.get(one, 0) for one, count in case.capacity.items()}


def _leaving(case: Case, snapshot: Snapshot) -> list[Vector]:
    """Gone without anybody being stopped: jobs asked to stop, and warm pools, which can be given up."""
    stopping = [
        one.vector for one in snapshot.running if one.state in (JobState.PREEMPTING, JobState.STOPPING)
    ]
    return [*stopping, *(one.vector for one in snapshot.warm_pools)]


def _stoppable(one: RunningJob, case: Case) -> bool:
    rules = case.pool.preemption
    return (
        one.state is JobState.RUNNING
        and one.preemptible
        and (one.training_since is None or NOON - one.training_since >= rules.min_runtime)
        and (one.has_checkpoint or not rules.needs_checkpoint)
    )


def _on_demand(vector: Vector) -> dict[str, int]:
    return {
        one.instance_type: count
        for one, count in vector.items()
        if one.capacity_type is CapacityType.ON_DEMAND
    }


def _as_spot(vector: Vector) -> dict[Capacity, int]:
    return {Capacity(one.instance_type, CapacityType.SPOT): count for one, count in vector.items()}
