"""What people see: every key always there, nothing of other teams by which to find a job."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from trainmaster.api.story_views import story_view
from trainmaster.api.views import (
    JobContext,
    effective_priority,
    instant_text,
    job_view,
    masked_view,
    policy_view,
    pool_view,
)
from trainmaster.core.errors import FieldError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ForeignCode, ReasonCode
from trainmaster.core.jobs.start_troubles import AccountRefusals, StartTrouble
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.lifecycle.width_changes import shrunk_for
from trainmaster.core.planning.fair_share import TeamShare
from trainmaster.core.planning.past_use import HALF_LIFE, UsePeriod, UseSums
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.planning.wait_reasons import QueuePosition
from trainmaster.core.policy import Aging, FairShare, Order, PoolPolicy, Quota
from trainmaster.core.records import HistoryLine, PoolState, StoredPolicy, TeamState

from tests.builders import NOON, A, B, attempt, changed, job, live_job, minutes, of, running, waiting

JOB_VIEW_KEYS = {
    "name", "team", "submitted_by", "pool", "state", "reason", "priority", "effective_priority", "instances",
    "capacity_type", "submitted_at", "started_at", "ended_at", "training_since", "ends_by", "position",
    "waiting", "attempt",
    "training_job_name", "training_job_arn", "preemptions", "retries", "wasted_seconds", "cost_usd",
    "cost_is_estimate", "fair_share", "after",
    "array", "elastic", "eligible_at",
}  # fmt: skip
POOL = PoolPolicy(name="main", capacity={A: 2, B: 1}, spot_capacity={A: 4})


def seen(one: Job, **around: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"now": NOON, "pool": POOL}
    return job_view(one, JobContext(**values | around))


@pytest.mark.parametrize("state", list(JobState))
def test_every_key_is_there_in_every_state(state: JobState) -> None:
    assert set(seen(replace(job("a"), state=state))) == JOB_VIEW_KEYS


def test_a_waiting_job() -> None:
    one = job("a", vector={**of(1), **of(2, B, spot=True)})
    view = seen(one, position=QueuePosition(number=3))
    assert view["name"] == "a"
    assert view["instances"] == {A: 1, B: 2}
    assert view["position"] == 3
    assert view["waiting"] == {"code": "ahead", "message": "2 jobs are ahead in this pool"}
    assert (view["training_job_name"], view["training_job_arn"]) == (None, None)


def test_a_reason_that_a_pass_wrote_wins_over_the_derived_one() -> None:
    one = replace(job("a"), waiting=Reason(code=ReasonCode.CAPACITY, message="needs 1"))
    assert seen(one, position=QueuePosition(number=3))["waiting"] == {
        "code": "capacity",
        "message": "needs 1",
    }


@pytest.mark.parametrize(
    ("position", "message"),
    [
        pytest.param(
            QueuePosition(number=1),
            "it is first in line; the next pass decides about it, within a minute",
            id="next in turn",
        ),
        pytest.param(
            QueuePosition(waiting=50), "at least 50 jobs are ahead in this pool", id="not counted further"
        ),
        pytest.param(QueuePosition(), "the next pass looks at it, within a minute", id="not counted at all"),
        pytest.param(
            QueuePosition.behind(1000), "at least 1000 jobs are ahead in this pool", id="far behind"
        ),
    ],
)
def test_every_waiting_job_has_a_reason(position: QueuePosition, message: str) -> None:
    assert seen(job("a"), position=position)["waiting"] == {"code": "ahead", "message": message}


@pytest.mark.parametrize(
    ("left", "then"),
    [
        pytest.param(minutes(3), "the next try is at 2026-11-02T12:03:00.000Z", id="until then"),
        pytest.param(timedelta(), "it is tried again within a minute", id="it is over"),
    ],
)
def test_C20_a_job_that_backs_off_says_until_when_and_how_often_it_was_refused(
    left: timedelta, then: str
) -> None:
    refused = Reason(code=ReasonCode.BACKOFF, message="SageMaker is busy")
    one = changed(job("a"), waiting=refused, not_before=NOON + left, refused_starts=2)
    assert seen(one)["waiting"] == {
        "code": "backoff",
        "message": f"SageMaker is busy; {then}, after 2 so far",
    }


def test_a_job_that_backs_off_and_preempts_nobody_yet_says_both() -> None:
    futile = FutilePreemptions(count=1, vector=of(4), since=NOON, until=NOON + minutes(15))
    none = Reason(code=ReasonCode.BACKOFF, message="CapacityError: none")
    one = changed(job("a"), waiting=none, not_before=NOON + minutes(1), no_capacity=1, futile=futile)
    message = seen(one)["waiting"]["message"]
    assert message.startswith("CapacityError: none; the last time that jobs were stopped for it, it did not")
    assert "it stops no job until 2026-11-02 12:15 UTC" in message
    assert message.endswith("; the next try is at 2026-11-02T12:01:00.000Z, after 1 so far")
    over = replace(one, futile=replace(futile, until=NOON))
    assert "stops no job" not in seen(over)["waiting"]["message"]


def test_start_ups_that_stops_made_worthless_are_wasted_seconds() -> None:
    one = changed(job("a"), wasted={"preemption": 60, "idle": 5}, startups={"preemption": 240})
    assert seen(one)["wasted_seconds"] == {"preemption": 300, "idle": 5}


REFUSED = Reason(code=ReasonCode.ACCOUNT_LIMIT, message="AWS refused to start it once: no")


@pytest.mark.parametrize(
    ("written", "found", "code", "message"),
    [
        pytest.param(REFUSED, ReasonCode.AHEAD, "account-limit", f"{REFUSED.message}; so it is", id="next"),
        pytest.param(
            REFUSED, ReasonCode.CAPACITY, "account-limit", f"{REFUSED.message}; so it is", id="full"
        ),
        pytest.param(
            Reason(code=ReasonCode.UNAVAILABLE, message="busy"),
            ReasonCode.AHEAD,
            "account-limit",
            "so it is",
            id="throttled since then",
        ),
        pytest.param(REFUSED, ReasonCode.PAUSED, "paused", "so it is", id="paused"),
    ],
)
def test_a_job_that_the_account_refused_waits_for_the_account_until_a_start_is_taken(
    written: Reason, found: ReasonCode, code: str, message: str
) -> None:
    trouble = StartTrouble(by_account=AccountRefusals(count=1))
    one = replace(job("a"), waiting=written, starts=trouble)
    why = Reason(code=found, message="so it is")
    assert seen(one, why=why)["waiting"] == {"code": code, "message": message}
    taken = replace(one, starts=StartTrouble(), waiting=None)
    assert seen(taken, why=why)["waiting"] == {"code": found.value, "message": "so it is"}


def test_a_reason_is_shown_once_though_the_row_keeps_what_a_planner_said_before() -> None:
    """Starts with its role are paused for the refusals of other jobs; the pause has a later instant now."""
    before = Reason(code=ReasonCode.REFUSED, message="starts are paused; the next one at 12:05 or later")
    now = Reason(code=ReasonCode.REFUSED, message="starts are paused; the next one at 12:10 or later")
    paused = replace(job("a"), waiting=before)
    assert seen(paused, why=now)["waiting"] == {"code": "refused", "message": now.message}
    own = replace(paused, starts=StartTrouble(by_account=AccountRefusals(count=1)), waiting=REFUSED)
    again = Reason(code=ReasonCode.ACCOUNT_LIMIT, message=f"{REFUSED.message}; nothing is kept free for it")
    assert seen(own, why=again)["waiting"] == {"code": "account-limit", "message": again.message}


@pytest.mark.parametrize("state", [JobState.RUNNING, JobState.STOPPING, JobState.COMPLETED])
def test_a_job_that_does_not_wait_has_no_reason_to(state: JobState) -> None:
    assert seen(replace(job("a"), state=state))["waiting"] is None


def test_positions_are_exact_to_1000() -> None:
    assert seen(job("a"), position=QueuePosition.behind(999))["position"] == 1000
    view = seen(job("a"), position=QueuePosition.behind(1000))
    assert (view["position"], view["ahead_at_least"]) == (None, 1000)


def test_a_live_job_shows_its_attempt() -> None:
    one = replace(
        job("a"), state=JobState.RUNNING, attempt=1, live=attempt("a-r1-abc", training_job_arn="arn:a")
    )
    view = seen(one)
    assert (view["attempt"], view["training_job_name"], view["training_job_arn"]) == (1, "a-r1-abc", "arn:a")


def test_a_job_without_a_live_attempt_shows_its_latest_if_known() -> None:
    one = replace(job("a"), state=JobState.COMPLETED)
    assert seen(one, latest=attempt("a", training_job_arn="arn:a"))["training_job_arn"] == "arn:a"


@pytest.mark.parametrize(
    ("aging", "waited", "expected"),
    [
        pytest.param(Aging(), timedelta(), 3.0, id="new"),
        pytest.param(Aging(), timedelta(hours=36), 4.5, id="a point a day by default"),
        pytest.param(Aging(per=timedelta(hours=1), add=10), timedelta(minutes=30), 8.0, id="another rate"),
        pytest.param(None, timedelta(days=90), 3.0, id="ageing off"),
        pytest.param(Aging(), timedelta(minutes=-5), 3.0, id="clocks that disagree"),
    ],
)
def test_effective_priority(aging: Aging | None, waited: timedelta, expected: float) -> None:
    rules = replace(POOL, order=Order(aging=aging))
    one = job("a", priority=3)
    assert effective_priority(one, rules, now=one.spec.submitted_at + waited) == expected


def test_past_use_counts_for_the_effective_priority_and_is_explained() -> None:
    rules = replace(POOL, order=Order(fair_share=FairShare(weight=10)))
    one = job("a", priority=3)
    share = TeamShare(team="vision", share=0.25, hours=60.0, used=0.5, points=-10.0)
    view = seen(one, pool=rules, now=one.spec.submitted_at, share=share)
    assert view["effective_priority"] == -7.0
    assert view["fair_share"] == {
        "share": 0.25,
        "used_share": 0.5,
        "times": 2.0,
        "points": -10.0,
        "message": "vision has used 2.0 times its share of the last 7d: its jobs count 10 points less",
    }


def test_effective_priority_stands_still_once_the_job_has_ended() -> None:
    one = job("a", priority=3)
    ended = replace(one, ended_at=one.spec.submitted_at + timedelta(hours=24))
    assert effective_priority(ended, POOL, now=NOON + timedelta(days=9)) == 4.0


def test_other_teams_see_no_name_and_nothing_to_find_it_by() -> None:
    one = replace(job("secret", priority=2), started_at=NOON)
    assert masked_view(one, QueuePosition(number=4)) == {
        "name": None,
        "team": "default",
        "pool": "main",
        "state": "pending",
        "priority": 2,
        "instances": {A: 1},
        "position": 4,
        "started_at": "2026-11-02T12:00:00.000Z",
        "training_since": None,
        "ends_by": None,
    }


def test_a_job_that_trains_says_since_when_and_when_it_ends_at_the_latest() -> None:
    live = attempt(training_since=NOON, max_runtime=minutes(60))
    one = replace(job("a"), state=JobState.RUNNING, live=live)
    for view in (seen(one), masked_view(one)):
        assert view["training_since"] == "2026-11-02T12:00:00.000Z"
        assert view["ends_by"] == "2026-11-02T13:10:00.000Z"


def test_an_attempt_says_what_is_known_of_its_gpus_and_checkpoints() -> None:
    one = attempt(
        idle_since=NOON,
        stop_due=NOON + minutes(10),
        underused_since=NOON,
        unguarded=Reason(code=ReasonCode.ALARM_QUOTA, message="no more"),
        last_checkpoint=NOON - minutes(30),
        checkpoint_overdue=True,
    )
    (shown,) = story_view(job("a"), (one,), ())["attempts"]
    assert (shown["idle_since"], shown["stop_due"]) == (
        "2026-11-02T12:00:00.000Z",
        "2026-11-02T12:10:00.000Z",
    )
    assert shown["underused_since"] == "2026-11-02T12:00:00.000Z"
    assert shown["unguarded"] == {"code": "alarm-quota", "message": "no more"}
    assert (shown["last_checkpoint"], shown["checkpoint_overdue"]) == ("2026-11-02T11:30:00.000Z", True)


def test_an_attempt_that_failed_says_what_was_found() -> None:
    found = Diagnosis(
        failure_class=FailureClass.HOST_OOM, advice="use less", evidence="Killed", exit_code=137
    )
    (shown,) = story_view(job("a"), (attempt(diagnosis=found),), ())["attempts"]
    assert shown["diagnosis"] == {
        "class": "host-oom",
        "advice": "use less",
        "evidence": "Killed",
        "exit_code": 137,
    }


@pytest.mark.parametrize(
    ("one", "message"),
    [
        pytest.param(
            job(
                not_before=NOON + minutes(5),
                waiting=Reason(code=ReasonCode.BACKOFF, message="network: x; retry 1 of 3"),
            ),
            "network: x; retry 1 of 3; the next try is at 2026-11-02T12:05:00.000Z",
            id="a retry says itself which it is",
        ),
        pytest.param(
            job(
                not_before=NOON + minutes(5),
                refused_starts=2,
                waiting=Reason(code=ReasonCode.BACKOFF, message="busy"),
            ),
            "busy; the next try is at 2026-11-02T12:05:00.000Z, after 2 so far",
            id="starts that were put off are counted",
        ),
    ],
)
def test_why_a_job_backs_off(one: Job, message: str) -> None:
    waits = job_view(one, JobContext(now=NOON, pool=None))["waiting"]
    assert waits == {"code": "backoff", "message": message}


def test_an_elastic_job_shows_its_widths() -> None:
    widths = Widths(counts=(1, 2, 4))
    narrow = attempt(shape=Shape(vector=of(2)))
    waits = seen(job("a", widths=widths))["elastic"]
    assert waits == {"widths": [1, 2, 4], "width": None, "wanted": 4, "why": None}
    runs = seen(live_job("a", widths=widths, live=narrow))
    assert runs["instances"] == {A: 2}
    assert (runs["elastic"]["width"], runs["elastic"]["wanted"]) == (2, 4)
    assert runs["elastic"]["why"].startswith("2 of 4 instances; it grows once there is room")
    full = seen(live_job("a", widths=widths, live=attempt(shape=Shape(vector=of(4)))))
    assert full["elastic"] == {"widths": [1, 2, 4], "width": 4, "wanted": 4, "why": None}
    asked = shrunk_for(live_job("a", widths=widths, live=narrow), waiting("urgent"), width=1, now=NOON)
    gives = seen(asked)["elastic"]
    assert gives["wanted"] == 1
    assert gives["why"] == "gave 1 of its 2 instances to urgent, and continues with 1"
    planned = seen(live_job("a", widths=widths, live=narrow), width="growing to 4 saves 22 min")
    assert planned["elastic"]["why"] == "growing to 4 saves 22 min"
    assert seen(job("a"))["elastic"] is None


def test_a_job_that_left_spot_is_shown_as_what_it_asks_for_now() -> None:
    shapes = (Shape(vector=of(spot=True)),)
    around = JobContext(now=NOON, pool=None)
    assert job_view(job(shapes=shapes), around)["capacity_type"] == "spot"
    assert job_view(job(shapes=shapes, on_demand=True, retries=2), around)["capacity_type"] == "on-demand"
    assert job_view(job(retries=2), around)["retries"] == 2


def test_the_story_of_a_job() -> None:
    line = HistoryLine(
        at=NOON,
        attempt=0,
        from_state=None,
        to_state=JobState.PENDING,
        reason=None,
    )
    again = replace(
        line,
        from_state=JobState.RUNNING,
        to_state=JobState.PREEMPTING,
        reason=Reason(code=ForeignCode("c"), message="m"),
    )
    one = attempt("a", training_job_arn="arn:a", status="Stopped", secondary_status="Stopped", ended_at=NOON)
    assert story_view(job("a"), (one,), (line, again)) == {
        "shapes_because": None,
        "set_by_pool": [],
        "attempts": [
            {
                "attempt": 0,
                "training_job_name": "a",
                "training_job_arn": "arn:a",
                "status": "Stopped",
                "secondary_status": "Stopped",
                "capacity_type": "on-demand",
                "instances": {A: 1},
                "started_at": instant_text(one.claim.at),
                "ended_at": "2026-11-02T12:00:00.000Z",
                "reason": None,
                "diagnosis": None,
                "idle_since": None,
                "stop_due": None,
                "underused_since": None,
                "underused_stop_due": None,
                "loss": None,
                "loss_stop_due": None,
                "unguarded": None,
                "last_checkpoint": None,
                "last_checkpoint_is_lower_bound": False,
                "checkpoint_overdue": False,
            }
        ],
        "history": [
            {"at": "2026-11-02T12:00:00.000Z", "attempt": 0, "from": None, "to": "pending", "reason": None},
            {
                "at": "2026-11-02T12:00:00.000Z",
                "attempt": 0,
                "from": "running",
                "to": "preempting",
                "reason": {"code": "c", "message": "m"},
            },
        ],
        "estimated_start": None,
        "estimate_note": None,
    }


def used_hours(hours: float) -> UseSums:
    """So many instance-hours as of now."""
    period = UsePeriod.at(NOON, HALF_LIFE)
    return {period: round(hours * 3_600_000 * 2 ** ((NOON - period.begin) / HALF_LIFE))}


def test_a_pool() -> None:
    used = {**of(3), **of(1, spot=True)}
    state = PoolState(
        used=used,
        teams={
            "vision": TeamState(used=of(1), waiting=2, past_use=used_hours(12)),
            "speech": TeamState(used=used, waiting=1, queued=1),
        },
        running=(running("live", team="speech", n=2, minutes_ago=60),),
    )
    assert pool_view(POOL, state, NOON - minutes(5), now=NOON) == {
        "name": "main",
        "capacity": {A: 2, B: 1},
        "spot_capacity": {A: 4},
        "used": {"on-demand": {A: 3}, "spot": {A: 1}},
        "warm": {"on-demand": {}, "spot": {}},
        "free": {"on-demand": {A: 0, B: 1}, "spot": {A: 3}},
        "warm_pools": [],
        "fair_share": {"half_life": "7d", "weight": 0},
        "teams": [
            {
                "name": "speech",
                "used": {"on-demand": {A: 3}, "spot": {A: 1}},
                "borrowed": {"on-demand": {}, "spot": {}},
                "quota": None,
                "waiting": 1,
                "fair_share": {
                    "instance_hours": 2.0,
                    "share": 1.0,
                    "used_share": 1.0,
                    "times": 1.0,
                    "points": 0.0,
                },
            },
            {
                "name": "vision",
                "used": {"on-demand": {A: 1}, "spot": {}},
                "borrowed": {"on-demand": {}, "spot": {}},
                "quota": None,
                "waiting": 2,
                "fair_share": {
                    "instance_hours": 12.0,
                    "share": None,
                    "used_share": None,
                    "times": None,
                    "points": None,
                },
            },
        ],
        "waiting": 3,
        "oldest_waiting_since": "2026-11-02T11:55:00.000Z",
        "account_limits": [],
        "set_aside": 0,
        "recount": None,
        "reranking": False,
    }


def test_what_is_warm_is_not_free() -> None:
    kept = WarmPool(
        training_job_name="old",
        team="vision",
        vector=of(2),
        warm_key="k",
        since=NOON,
        expires_at=NOON + minutes(9),
    )
    state = PoolState(used=of(1), teams={}, warm=of(2), warm_pools=(kept,))
    view = pool_view(replace(POOL, capacity={A: 4}), state, None, now=NOON)
    assert view["warm"] == {"on-demand": {A: 2}, "spot": {}}
    assert view["free"]["on-demand"] == {A: 1}
    assert view["warm_pools"] == [
        {"instance_type": A, "instances": 2, "expires_at": "2026-11-02T12:09:00.000Z"}
    ]


def test_a_team_borrows_what_it_uses_beyond_its_quota() -> None:
    quotas = {"vision": Quota(nominal={A: 1}, borrowing_limit={A: 2}), "quiet": Quota(nominal={A: 1})}
    state = PoolState(
        used={**of(4), **of(3, spot=True)},
        teams={
            "vision": TeamState(used={**of(3), **of(3, spot=True)}, waiting=0),
            "guest": TeamState(used=of(1), waiting=0),
        },
    )
    teams = {
        team["name"]: team for team in pool_view(replace(POOL, quotas=quotas), state, None, now=NOON)["teams"]
    }
    assert list(teams) == ["guest", "quiet", "vision"]
    assert teams["vision"]["borrowed"] == {"on-demand": {A: 2}, "spot": {}}
    assert teams["vision"]["quota"] == {"nominal": {A: 1}, "borrowing_limit": {A: 2}}
    assert teams["guest"]["borrowed"] == {"on-demand": {A: 1}, "spot": {}}
    assert teams["guest"]["quota"] == {"nominal": {}, "borrowing_limit": None}
    assert teams["quiet"]["used"] == {"on-demand": {}, "spot": {}}


def test_learned_account_limits_are_shown() -> None:
    limits = {Capacity(A): AccountLimit(limit=2, until=NOON, refusals=1)}
    view = pool_view(POOL, PoolState(used={}, teams={}, account_limits=limits), None, now=NOON)
    assert view["account_limits"] == [
        {"instance_type": A, "capacity_type": "on-demand", "limit": 2, "until": "2026-11-02T12:00:00.000Z"}
    ]


def test_a_pool_says_that_its_queue_is_being_put_into_another_order() -> None:
    for order_key, expected in ((None, False), (POOL.order_key, False), ("length-1", True)):
        state = PoolState(used={}, teams={}, order_key=order_key)
        assert pool_view(POOL, state, None, now=NOON)["reranking"] is expected


@pytest.mark.parametrize(
    ("state", "fields", "cost"),
    [
        pytest.param(JobState.PENDING, {}, 0.0, id="a job that never ran cost nothing"),
        pytest.param(JobState.COMPLETED, {"cents": 1234}, 12.34, id="the bills of its attempts"),
        pytest.param(
            JobState.COMPLETED, {"cents": 1234, "unpriced": True}, None, id="one of them is not known"
        ),
        pytest.param(
            JobState.RUNNING,
            {"cents": 100, "live": attempt("a", claimed_at=NOON - minutes(30), usd_per_hour=Decimal(9))},
            5.5,
            id="and the live one since its claim",
        ),
        pytest.param(
            JobState.RUNNING, {"cents": 100, "live": attempt("a")}, None, id="whose price nobody knows"
        ),
    ],
)
def test_what_a_job_cost(state: JobState, fields: dict[str, Any], cost: float | None) -> None:
    view = seen(changed(job("a"), state=state, **fields))
    assert (view["cost_usd"], view["cost_is_estimate"]) == (cost, state is not JobState.COMPLETED)


def test_a_policy() -> None:
    stored = StoredPolicy(revision=2, version=5, paused=True, document={"pools": []}, seal_key="secret")
    warning = FieldError(field="rules", message="m", hint="h")
    assert policy_view(stored, (warning,)) == {
        "revision": 2,
        "paused": True,
        "policy": {"pools": []},
        "warnings": [{"field": "rules", "message": "m", "hint": "h"}],
    }


def test_instants_are_utc_to_the_millisecond() -> None:
    paris = datetime(2026, 6, 1, 14, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert instant_text(paris) == "2026-06-01T12:00:00.999Z"
    assert instant_text(None) is None
