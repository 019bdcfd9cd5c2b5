"""One example of each stored class with every field set, and one with as few as it can have."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

from trainmaster.core.costs.ledger import PreemptionEntry
from trainmaster.core.durations.learned import LikelyLengths
from trainmaster.core.durations.work_speeds import MeasuredWidths, WorkSpeed
from trainmaster.core.jobs.attempts import Attempt, LossWatch, Preemptor, Reason, StatusStart, StopsInARow
from trainmaster.core.jobs.elastic_state import ElasticState, RunTimeLimits, TrainingProgress
from trainmaster.core.jobs.end_conditions import (
    Condition,
    ConditionKind,
    Dependencies,
    EndedParent,
    ParentEnd,
    Root,
)
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions
from trainmaster.core.jobs.hold_open import HoldOpen
from trainmaster.core.jobs.index_sets import TaskOf
from trainmaster.core.jobs.instances import Capacity, Choice, Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import parse_code
from trainmaster.core.jobs.recent_stops import RecentStops
from trainmaster.core.jobs.start_troubles import AccountRefusals, RequestRefusals
from trainmaster.core.jobs.widths import Widths
from trainmaster.core.outbox.messages import MessageKind, Notice, NoticeKind, OutboxMessage
from trainmaster.core.planning.refusal_records import AccountLimit, RefusedStart, RoleStarts, StartPause
from trainmaster.core.planning.snapshot import PreemptionReservation, WarmPool
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.records import Alias, HistoryLine
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord

from tests.builders import ENTRY, NOON, A, B, attempt, job, minutes, of, running, waiting

SPOT_PAIR = Shape(vector=of(2, A, spot=True), subnet="subnet-1", warm_key="key-1", avoids_plans=True)
SHAPES = (SPOT_PAIR, Shape(vector={Capacity(A): 1, Capacity(B): 3}))
REFUSED = RequestRefusals(
    count=3, code="ValidationException", number=9, alone=2, alone_since=NOON + minutes(1)
)
LIKELY = LikelyLengths(lengths=(minutes(20), minutes(40)))
FUTILE = FutilePreemptions(
    count=2,
    vector={Capacity(A): 2, Capacity(B): 2},
    choice=Choice.SAGEMAKER,
    since=NOON + minutes(56),
    until=NOON + minutes(86),
)
MEASURED = MeasuredWidths(counts=(1, 2), per_1000_s=(900, 1600), runs=3, other_settings=True)
RECENT_STOPS = RecentStops(count=3, at=NOON + minutes(9), lost=minutes(4))
DIAGNOSIS = Diagnosis(
    failure_class=FailureClass.GPU_OOM,
    advice="Halve the batch.",
    evidence="CUDA out of memory",
    exit_code=137,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    full: Any
    sparse: Any


def reason(code: str) -> Reason:
    return Reason(code=parse_code(code), message=f"because of {code}")


def full_attempt() -> Attempt:
    return attempt(
        number=2,
        shape=SPOT_PAIR,
        plan_arn="arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring",
        max_wait=timedelta(hours=7),
        keep_alive=minutes(9),
        max_pending=minutes(30),
        reuses="train-0",
        half_life=timedelta(days=3),
        cold_startup=minutes(5),
        usd_per_hour=Decimal("2.84"),
        reserved_cents=568,
        month="2026-11",
        status="Stopped",
        secondary_status="Stopping",
        training_since=NOON + minutes(4),
        last_checkpoint=NOON + minutes(40),
        checkpoint_uncertain_since=NOON + minutes(41),
        taken_by="urgent",
        taken_by_team="research",
        reclaims=True,
        stop_sent=True,
        missing_since=NOON + minutes(50),
        warm_start=True,
        interruptions=3,
        trained=minutes(44),
        speed=WorkSpeed(unit="tokens", per_1000_s=7_090_500),
        statuses=(
            StatusStart(status="Training", at=NOON + minutes(4)),
            StatusStart(status="Stopped", at=NOON + minutes(55)),
        ),
        lost=minutes(4),
        guarded="digest",
        unguarded=reason("alarm-quota"),
        guard_again_at=NOON + minutes(15),
        idle_since=NOON + minutes(20),
        stop_due=NOON + minutes(50),
        underused_since=NOON + minutes(21),
        underused_stop_due=NOON + minutes(22),
        metrics_sought_at=NOON + minutes(16),
        checkpoint_overdue=True,
        loss=LossWatch(
            lowest="0.25",
            lowest_at=NOON + minutes(23),
            finding=reason("loss-not-finite"),
            stop_due=NOON + minutes(24),
        ),
        stays_on_spot=reason("no-fallback"),
        diagnosis=DIAGNOSIS,
        ended_at=NOON + minutes(55),
        reason=reason("preemption"),
        instance_seconds=6600,
        cents=260,
        cents_by={"productive": 200, "startup": 60},
        saved_cents=120,
        warm_saved_cents=35,
    )


ROOT = Root(name="prepare", entry_id="01JBN8Q0000000000000000001", team="research", message="failed")
AFTER = Dependencies(
    conditions=(
        Condition(
            kind=ConditionKind.AFTER_NOT_OK,
            job="prepare",
            entry_id="01JBN8Q0000000000000000001",
            team="research",
            end=ParentEnd.COMPLETED,
        ),
    ),
    hold_when_impossible=True,
    root=ROOT,
)


def full_job() -> Job:
    every = job(
        state=JobState.RUNNING,
        shapes=SHAPES,
        choice=Choice.SAGEMAKER,
        max_wait=timedelta(hours=7),
        keep_alive=minutes(9),
        predicted=minutes(33),
        halves_batch=True,
        widths=Widths(counts=(1, 2, 4), measured=MEASURED),
        elastic=ElasticState(
            limits=RunTimeLimits(granted=minutes(60), refused=minutes(90)),
            narrower_than=4,
            fell_back=True,
            account_width=2,
            wanted=2,
            resized_at=NOON + minutes(3),
            progress=TrainingProgress(at=NOON, step=10, steps=100, speeds={"2": 1500}),
        ),
        set_by_pool=("RoleArn", "Tags.owner"),
        work_kind="0123456789abcdef:fedc",
        measured="4 x ml.a: 1.31x",
        hold_open=HoldOpen(longest=minutes(30), is_after_failure=True),
        priority=7,
        ranked_by="order-1",
        ver=12,
        attempt=2,
        live=full_attempt(),
        not_before=NOON + minutes(1),
        waiting=reason("backoff"),
        reason=reason("stopped-by-user"),
        started_at=NOON + minutes(2),
        ended_at=NOON + minutes(90),
        preemptions=1,
        stopped_for=StopsInARow(
            preemptor=Preemptor(name="urgent", team="research", reclaims=True), count=2, recent=RECENT_STOPS
        ),
        made_room_for=2,
        futile=FUTILE,
        retries=2,
        productive=minutes(3),
        halvings=4,
        rewritten={"batch_size": "4"},
        idle_requeues=5,
        reclaims=2,
        interruptions=6,
        spot_trained=minutes(7),
        spot_elapsed=minutes(8),
        on_demand=True,
        checkpointed=minutes(9),
        extensions=10,
        refused_starts=11,
        unknown_errors=12,
        faults=3,
        refused_by_account=AccountRefusals(count=3, held=of(4), again_at=NOON + minutes(1)),
        refused_by_request=REFUSED,
        no_capacity=4,
        wasted={"preemption": 13},
        startups={"preemption": 240},
        cents=14,
        unpriced=True,
    )
    also: dict[str, Any] = {
        "learned_in": ("n0ff", "e001"),
        "likely": LIKELY,
        "role": "0a1b",
        "key_hash": "1" * 64,
        "own_quota": {A: 2},
        "array": TaskOf(name="train", index=1, position=0, at_most=4, stop_after=10),
    }
    every = replace(every, after=AFTER, eligible_at=NOON + minutes(3), has_dependents=True)
    return replace(every, spec=replace(every.spec, retries=3, adopted=True, **also))


def _jobs() -> Iterator[tuple[str, Example]]:
    yield "Job", Example(full=full_job(), sparse=job())
    yield "Attempt", Example(full=full_attempt(), sparse=attempt(training_job_arn=None))
    full_waiting = waiting(
        "train-1",
        priority=7,
        shapes=SHAPES,
        state=JobState.PREEMPTED,
        max_wait=timedelta(hours=7),
        choice=Choice.SAGEMAKER,
        has_checkpoint=True,
        left_spot=True,
        predicted=minutes(33),
        trained=minutes(12),
        likely=LIKELY,
        ranked_by="order-1",
        not_before=NOON + minutes(1),
        refused=AccountRefusals(count=3, held=of(4), again_at=NOON + minutes(1)),
        preemptible=False,
        own_quota={A: 2},
        array="train",
        widths=Widths(counts=(1, 2), measured=MEASURED),
        role="0a1b",
        turned_down=2,
        futile=FUTILE,
    )
    yield "WaitingJob", Example(full=full_waiting, sparse=waiting("train-1"))


def _running() -> Iterator[tuple[str, Example]]:
    full_running = running(
        "train-1",
        priority=7,
        vector=SPOT_PAIR.vector,
        ends_by=NOON + minutes(99),
        stop_sent=True,
        preemptions=2,
        runs_at_most=timedelta(hours=1),
        last_checkpoint=NOON,
        checkpoint_uncertain_since=NOON + minutes(41),
        predicted=minutes(33),
        trained=minutes(12),
        likely=LIKELY,
        cents_per_hour=284,
        warm_key="key-1",
        ranked_by="order-1",
        guarded="digest",
        unguarded="alarm-quota",
        guard_again_at=NOON + minutes(15),
        idle_since=NOON + minutes(20),
        stop_due=NOON + minutes(50),
        underused_since=NOON + minutes(21),
        underused_stop_due=NOON + minutes(22),
        metrics_sought_at=NOON + minutes(16),
        checkpoint_overdue=True,
        reuses="train-0",
        stops=RECENT_STOPS,
        preempted_for="urgent",
        own_quota={A: 2},
        array="train",
        widths=Widths(counts=(1, 2), measured=MEASURED),
        progress=TrainingProgress(at=NOON, step=10, steps=100, speeds={"2": 1500}),
        resized_at=NOON + minutes(3),
        account_width=2,
    )
    sparse_running = running("train-1", known_to_sagemaker=False, training_since=None)
    yield "RunningJob", Example(full=full_running, sparse=sparse_running)


def sparse_role_starts() -> RoleStarts:
    return RoleStarts(role_arn="arn:aws:iam::111122223333:role/train", ver=1, number=1, at=NOON)


def full_role_starts() -> RoleStarts:
    pause = StartPause(
        since=NOON,
        number=7,
        code="AccessDeniedException",
        message="AccessDeniedException: no iam:PassRole",
        team="vision",
        probes=2,
        next_probe_at=NOON + minutes(4),
    )
    return replace(
        sparse_role_starts(),
        launcher="arn:aws:iam::111122223333:role/trainmaster-launcher-red",
        ver=12,
        number=9,
        accepted=4,
        refused=(RefusedStart(entry_id=ENTRY, code="AccessDeniedException", number=9),),
        pause=pause,
    )


def _of_the_pool() -> Iterator[tuple[str, Example]]:
    warm: dict[str, Any] = {
        "training_job_name": "train-0",
        "team": "research",
        "vector": of(2),
        "warm_key": "key-1",
        "since": NOON,
        "expires_at": NOON + minutes(9),
    }
    paid: dict[str, Any] = {
        "job": "train-0",
        "month": "2026-11",
        "usd_per_hour": Decimal("1.5"),
        "billed_from": NOON,
        "because": "its capacity is needed",
    }
    full_warm = WarmPool(**warm, **paid, releasing=True)
    yield "WarmPool", Example(full=full_warm, sparse=WarmPool(**warm))
    reserved: dict[str, Any] = {"preemptor": "urgent", "vector": of(2), "victims": ("train-1", "train-2")}
    full_reservation = PreemptionReservation(**reserved, until=NOON, missing=of(1))
    yield "PreemptionReservation", Example(full=full_reservation, sparse=PreemptionReservation(**reserved))
    limit = AccountLimit(limit=4, until=NOON, refusals=2)
    yield "AccountLimit", Example(full=limit, sparse=limit)
    yield "RoleStarts", Example(full=full_role_starts(), sparse=sparse_role_starts())


def _records() -> Iterator[tuple[str, Example]]:
    alias = Alias(job="train-1", entry_id=ENTRY, attempt=2)
    yield "Alias", Example(full=alias, sparse=alias)
    line: dict[str, Any] = {"at": NOON, "attempt": 2, "to_state": JobState.PENDING}
    full_line = HistoryLine(**line, from_state=JobState.HELD, reason=reason("backoff"))
    yield "HistoryLine", Example(full=full_line, sparse=HistoryLine(**line, from_state=None, reason=None))
    taking: dict[str, Any] = {
        "at": NOON,
        "preemptor": "urgent",
        "preemptor_team": "research",
        "victim": "train-1",
        "victim_team": "default",
        "instance_seconds_lost": 240,
    }
    entry = PreemptionEntry(**taking, cents_lost=19)
    yield "PreemptionEntry", Example(full=entry, sparse=PreemptionEntry(**taking, cents_lost=None))
    yield "ViolationRecord", Example(full=_violation(full=True), sparse=_violation(full=False))
    notice = Notice(
        kind=NoticeKind.JOB_IDLE,
        team="default",
        training_job_name="train-1",
        job="train-1",
        what="It is idle.",
        why="Its alarm says so.",
        todo="Look.",
        undo="Tag it.",
        detail={"minutes": 30, "stops": True, "gpus": ["0", "1"]},
    )
    message = OutboxMessage(
        id="0001",
        kind=MessageKind.TELL,
        at=NOON,
        notice=notice,
        training_job_name="train-1",
        found=_violation(full=True),
        alarms=("idle-train-1",),
        lease_until=NOON + minutes(2),
        parent=EndedParent(entry_id="01JBN8Q0000000000000000001", end=ParentEnd.FAILED, root=ROOT),
        upto="train-9",
        array="train",
        releases=True,
    )
    sparse = OutboxMessage(id="0001", kind=MessageKind.DELETE_ALARMS, at=NOON)
    yield "OutboxMessage", Example(full=message, sparse=sparse)


def _violation(*, full: bool) -> ViolationRecord:
    values: dict[str, Any] = {
        "at": NOON,
        "training_job_name": "train-1",
        "team": "default",
        "role_arn": "arn:aws:iam::111122223333:role/train",
        "unmanaged": True,
        "outcome": Outcome.AUDITED,
    }
    if not full:
        return ViolationRecord(**values)
    found = Violation(rule="images", field="Image", message="is odd", hint="use ours", mode=Mode.AUDIT)
    arn = "arn:aws:sagemaker:us-east-1:111122223333:training-job/train-1"
    return ViolationRecord(**values, training_job_arn=arn, violations=(found,), revision=3)


EXAMPLES: dict[str, Example] = dict([*_jobs(), *_running(), *_of_the_pool(), *_records()])
