"""Who is told what when a job or an attempt is over."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Attempt, Reason, StopsInARow
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.futile_preemptions import FutilePreemptions, after_another
from trainmaster.core.jobs.instances import Choice, Shape
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode, parse_code
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox import messages_of
from trainmaster.core.outbox.messages import MessageKind, Notice, NoticeKind
from trainmaster.core.planning.snapshot import WaitingJob

from tests.builders import ENTRY, NOON, attempt, changed, job, live_job, minutes, of, waiting

BUG = Diagnosis(
    failure_class=FailureClass.USER_CODE,
    advice="fix the import and queue it again",
    evidence="ModuleNotFoundError: No module named 'torhc'",
    exit_code=1,
)


def over(before: Job, state: JobState, reason: Reason, *, ended: Mapping[str, Any], **after: Any) -> Change:
    """The end of the live attempt, half an hour after noon."""
    assert before.live is not None
    at = NOON + minutes(30)
    values: dict[str, Any] = {"ended_at": at, "reason": reason}
    attempt_ended = changed(before.live, **values | dict(ended))
    final: dict[str, Any] = {"reason": reason, "ended_at": at}
    fields = final | after if state in (JobState.FAILED, JobState.STOPPED) else after
    done = changed(before, state=state, live=None, **fields)
    return Change(before=before, after=done, ended=attempt_ended)


def trains(**fields: Any) -> Job:
    """A job that trains since noon; version 7 of it."""
    of_attempt: dict[str, Any] = {"training_since": NOON, "shape": Shape(vector=of(2))}
    of_attempt |= fields.pop("live", {})
    values: dict[str, Any] = {"team": "vision", "live": attempt(**of_attempt), "ver": 7}
    return live_job(**values | fields)


def told(change: Change) -> Notice:
    """The only notice of a change."""
    (message,) = messages_of(change, at=NOON)
    assert message.kind is MessageKind.TELL
    assert message.notice is not None
    return message.notice


def test_the_message_of_a_notice_is_named_after_job_version_and_kind() -> None:
    (message,) = messages_of(completed(), at=NOON)
    assert (message.id, message.at) == (f"{ENTRY}#000008#job-completed", NOON)


def completed(**after: Any) -> Change:
    reason = Reason(code=ReasonCode.COMPLETED, message="the training job completed")
    return over(trains(), JobState.COMPLETED, reason, ended={}, **after)


def test_a_completed_job_with_its_cost() -> None:
    assert told(completed(cents=1234)) == Notice(
        kind=NoticeKind.JOB_COMPLETED,
        team="vision",
        job="train-1",
        training_job_name="train-1",
        what="Job train-1 completed. It cost about $12.34.",
        todo="`trainmaster show train-1` shows its attempts.",
        detail={
            "state": "completed",
            "reason": "completed",
            "attempt": 0,
            "capacity_type": "on-demand",
            "instances": {"ml.a.xlarge": 2},
            "lost_seconds": 0,
            "cost_cents": 1234,
        },
    )


def test_a_cost_that_nobody_knows_is_not_named() -> None:
    notice = told(completed(cents=1234, unpriced=True))
    assert notice.what == "Job train-1 completed."
    assert "cost_cents" not in notice.detail


def test_the_mail_of_a_failure_gives_the_advice_once_and_the_line_of_the_log() -> None:
    text = "Not retried: failures of class user-code are not retried. SageMaker says: exit code: 1"
    of_job = Reason(code=ReasonCode.USER_CODE, message=f"{BUG.advice} {text}")
    of_attempt = Reason(code=ReasonCode.USER_CODE, message=text)
    ended = {"diagnosis": BUG, "reason": of_attempt}
    notice = told(over(trains(), JobState.FAILED, of_job, ended=ended))
    assert notice.why == (
        "Not retried: failures of class user-code are not retried. SageMaker says: exit code: 1;"
        f" the line that shows it: {BUG.evidence}"
    )
    assert notice.todo == BUG.advice


def test_a_failed_job_with_class_evidence_and_advice() -> None:
    reason = Reason(code=ReasonCode.USER_CODE, message="AlgorithmError: exit code 1")
    notice = told(over(trains(), JobState.FAILED, reason, ended={"diagnosis": BUG}))
    assert notice.kind is NoticeKind.JOB_FAILED
    assert notice.what == "Job train-1 failed (user-code). It is not requeued."
    assert notice.why == (
        "AlgorithmError: exit code 1; the line that shows it: ModuleNotFoundError: No module named 'torhc'"
    )
    assert notice.todo == "fix the import and queue it again"
    assert notice.undo == "Queue it again under another name; s3://bucket/checkpoints has its checkpoints."
    assert notice.detail["failure_class"] == "user-code"
    assert notice.detail["evidence"] == "ModuleNotFoundError: No module named 'torhc'"
    assert notice.detail["exit_code"] == 1
    assert notice.detail["retries"] == 0


def test_a_job_that_never_started_fails_without_an_attempt() -> None:
    reason = Reason(code=ReasonCode.FAILED_TO_START, message="SageMaker refused the image")
    before = job(team="vision", ver=2)
    notice = told(Change(before=before, after=steps.failed(before, reason=reason, now=NOON)))
    assert notice.kind is NoticeKind.JOB_FAILED
    assert notice.training_job_name is None
    assert notice.what == "Job train-1 failed (failed-to-start). It is not requeued."
    assert notice.detail == {
        "state": "failed",
        "reason": "failed-to-start",
        "failure_class": "failed-to-start",
        "retries": 0,
    }


@pytest.mark.parametrize(("lost", "cause"), [(minutes(10), "failures"), (minutes(0), None)])
def test_a_failure_tells_what_it_threw_away(lost: timedelta, cause: str | None) -> None:
    reason = Reason(code=ReasonCode.HARDWARE, message="the host died")
    notice = told(over(trains(), JobState.FAILED, reason, ended={"lost": lost}))
    assert (notice.detail["lost_seconds"], notice.detail.get("lost_to")) == (lost.total_seconds(), cause)


def test_what_a_user_logged_is_printed_in_one_line_and_cut() -> None:
    text = "\x1b[2J" + "x\n" * 600 + "\N{RIGHT-TO-LEFT OVERRIDE}"
    reason = Reason(code=ReasonCode.USER_CODE, message=text)
    why = told(over(trains(), JobState.FAILED, reason, ended={})).why
    assert len(why) == 500
    assert why.startswith("[2J")
    assert why.endswith("...")
    assert why.isprintable()


def test_a_stopped_job_says_who_stopped_it() -> None:
    reason = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by arn:aws:iam::111122223333:user/ada")
    before = job(team="vision", ver=2)
    notice = told(Change(before=before, after=steps.cancelled(before, reason=reason, now=NOON)))
    assert notice.kind is NoticeKind.JOB_STOPPED
    assert notice.what == "Job train-1 is stopped. It is not requeued."
    assert notice.why == "stopped by arn:aws:iam::111122223333:user/ada"


def test_a_stop_that_is_only_asked_for_is_told_when_it_is_done() -> None:
    reason = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by ada")
    before = trains()
    after = steps.cancelled(before, reason=reason, now=NOON)
    assert messages_of(Change(before=before, after=after), at=NOON) == ()


def test_a_job_stopped_for_idleness_says_so_and_counts_the_idle_time() -> None:
    reason = Reason(code=ReasonCode.IDLE, message="its GPUs did nothing for 25 minutes")
    before = trains(live={"training_since": NOON, "idle_since": NOON + minutes(5)}, state=JobState.STOPPING)
    notice = told(over(before, JobState.STOPPED, reason, ended={"lost": minutes(25)}))
    assert notice.why == "its GPUs did nothing for 25 minutes"
    assert notice.todo == "Find in its log what its GPUs waited for before you queue it again."
    assert (notice.detail["reason"], notice.detail["lost_to"], notice.detail["lost_seconds"]) == (
        "idle",
        "idle",
        1500,
    )


def back(before: Job, state: JobState, code: str, message: str, **fields: Any) -> Change:
    """The attempt is over and the job waits with the next one."""
    ended = fields.pop("ended", {})
    reason = Reason(code=parse_code(code), message=message)
    return over(before, state, reason, ended=ended, attempt=before.attempt + 1, **fields)


def test_a_charged_retry_says_which_of_how_many_and_when() -> None:
    oom = Diagnosis(failure_class=FailureClass.GPU_OOM, advice="a smaller batch needs less memory")
    change = back(
        trains(retries=1),
        JobState.PENDING,
        "gpu-oom",
        "CUDA out of memory",
        ended={"diagnosis": oom},
        retries=1,
        halvings=1,
        not_before=NOON + minutes(31),
        waiting=Reason(code=ReasonCode.BACKOFF, message="gpu-oom: retry 1 of 3"),
    )
    change = replace(change, before=changed(change.before, retries=0))
    notice = told(change)
    assert notice.kind is NoticeKind.JOB_RETRIED
    assert notice.what == (
        "Attempt 0 of job train-1 failed (gpu-oom). It is requeued, retry 1."
        " It starts at 2026-11-02 12:31 UTC or later. With half the batch."
    )
    assert notice.why == "gpu-oom: retry 1 of 3"
    assert notice.todo == "Nothing: it resumes from its last checkpoint."
    assert notice.detail["advice"] == "a smaller batch needs less memory"
    assert notice.undo == (
        "`trainmaster hold train-1` keeps it from starting until `trainmaster release train-1`;"
        " `trainmaster cancel train-1` ends it."
    )
    assert {key: notice.detail[key] for key in ("failure_class", "charged", "retries", "halvings")} == {
        "failure_class": "gpu-oom",
        "charged": True,
        "retries": 1,
        "halvings": 1,
    }
    assert notice.detail["not_before"] == "2026-11-02T12:31:00.000Z"


def test_a_wait_for_instances_is_told_as_a_retry_that_is_not_charged() -> None:
    text = "SageMaker had no instances within the pending time"
    notice = told(back(trains(), JobState.PENDING, "capacity", text))
    assert (
        notice.what
        == "Attempt 0 of job train-1 got nowhere (capacity). It is requeued, not counted as a retry."
    )
    assert notice.why == text
    assert notice.detail["charged"] is False


def test_a_retry_without_checkpoints_starts_anew() -> None:
    notice = told(back(trains(has_checkpoint=False), JobState.PENDING, "capacity", "no instances"))
    assert notice.todo == "Nothing. Without a CheckpointConfig it starts from the beginning."


def preempted(preemptor: WaitingJob, **fields: Any) -> Change:
    """Stopped for another; it lost ten minutes."""
    before = steps.preempted_for(trains(**fields), preemptor)
    assert before.reason is not None
    ended = {"lost": minutes(10)}
    return back(before, JobState.PREEMPTED, "preemption", before.reason.message, ended=ended, preemptions=1)


def test_a_preempted_job_hears_of_the_job_of_its_own_team() -> None:
    notice = told(preempted(waiting("urgent", team="vision")))
    assert notice.kind is NoticeKind.JOB_PREEMPTED
    assert notice.what == (
        "Job train-1 was preempted by another job and is back in the queue. 10 min of training was lost."
    )
    assert notice.why == "made room for urgent"
    assert notice.detail["for_team"] == "vision"
    assert notice.detail["for_job"] == "urgent"
    assert (notice.detail["lost_seconds"], notice.detail["lost_to"]) == (600, "preemption")


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("shrink", "gave instances to another job and comes back at once, narrower."),
        ("grow", "was stopped to come back at once on more instances."),
        ("max-runtime-at-width", "ran out of time at a narrow width and is back in the queue."),
    ],
)
def test_a_change_of_width_is_told_as_what_it_is(code: str, what: str) -> None:
    asked = replace(trains(), state=JobState.PREEMPTING)
    notice = told(back(asked, JobState.PREEMPTED, code, "why", ended={"lost": minutes(0)}))
    assert notice.kind is NoticeKind.JOB_PREEMPTED
    assert notice.what.startswith(f"Job train-1 {what}")
    assert notice.todo == "It is in the queue and starts again automatically."


def test_of_a_job_of_another_team_only_the_team_is_named() -> None:
    notice = told(preempted(waiting("secret-project", team="speech")))
    assert notice.why == "made room for a job of team speech"
    assert notice.detail["for_team"] == "speech"
    assert "secret-project" not in repr(notice)


def test_without_a_checkpoint_a_preempted_job_hears_that_it_starts_anew() -> None:
    notice = told(preempted(waiting("urgent"), has_checkpoint=False))
    assert notice.todo == (
        "It is in the queue and starts again automatically."
        " Without a CheckpointConfig it starts from the beginning."
    )


def test_a_job_that_is_stopped_again_hears_how_often_for_whom_and_what_helps() -> None:
    change = preempted(waiting("urgent", team="speech"))
    assert change.ended is not None
    assert change.ended.preempted_for is not None
    row = StopsInARow(preemptor=change.ended.preempted_for, count=2)
    change = replace(change, after=changed(change.after, preemptions=3, stopped_for=row))
    notice = told(change)
    assert "It has made room 3 times, the last 2 times for a job of team speech." in notice.what
    assert (notice.detail["preemptions"], notice.detail["in_a_row"]) == (3, 2)
    assert "preemption.min_runtime" in notice.todo
    assert "urgent" not in repr(notice)


def test_a_start_up_that_a_stop_made_worthless_is_told() -> None:
    change = preempted(waiting("urgent"))
    ended = changed(
        change.ended or attempt(), training_since=None, lost=minutes(0), ended_at=NOON + minutes(9)
    )
    after = changed(change.after, startups={"preemption": 540})
    notice = told(replace(change, ended=ended, after=after))
    assert notice.what.endswith("It had not begun to train: 9 min of start-up was lost.")
    assert (notice.detail["lost_seconds"], notice.detail["startup_seconds"]) == (0, 540)


def unserved(count: int = 1) -> Change:
    """Jobs were stopped for an attempt that found no capacity, the count-th time in a row."""
    change = back(trains(), JobState.PENDING, "capacity", "CapacityError: none")
    chain: list[FutilePreemptions | None] = [None]
    for _ in range(count):
        chain.append(
            after_another(
                chain[-1], vector=of(4), choice=Choice.FIRST_FIT, ended_at=NOON, now=NOON + minutes(1)
            )
        )
    before, after = change.before, change.after
    return replace(change, before=replace(before, futile=chain[-2]), after=replace(after, futile=chain[-1]))


def test_a_preemption_that_did_not_help_is_told_to_owner_and_operators_once_a_chain() -> None:
    first = [message.notice for message in messages_of(unserved(), at=NOON) if message.notice]
    assert [notice.kind for notice in first] == [
        NoticeKind.JOB_RETRIED,
        NoticeKind.PREEMPTION_FUTILE,
        NoticeKind.PLATFORM_WARNING,
    ]
    retried, owner, operators = first
    assert (owner.team, operators.team) == ("vision", "operators")
    assert "No job is stopped for it before 2026-11-02 12:16 UTC" in owner.what
    assert owner.why == "CapacityError: none"
    assert (
        "Jobs were stopped for it in vain, once: it stops none before 2026-11-02 12:16 UTC." in retried.what
    )
    assert retried.todo.startswith("Ask for fewer instances")
    again = [message.notice for message in messages_of(unserved(2), at=NOON) if message.notice]
    assert [notice.kind for notice in again] == [NoticeKind.JOB_RETRIED]
    assert "in vain, 2 times in a row: it stops none before 2026-11-02 12:31 UTC." in again[0].what


def test_capacity_that_is_missing_again_and_again_has_advice() -> None:
    notice = told(back(trains(), JobState.PENDING, "capacity", "no instances", no_capacity=2))
    assert notice.todo.startswith("Ask for fewer instances")


def test_asking_24_victims_to_stop_leaves_nothing_to_be_written() -> None:
    victims = [trains(name=f"victim-{number}") for number in range(24)]
    changes = [Change(before=one, after=steps.preempted_for(one, waiting("urgent"))) for one in victims]
    assert [message for change in changes for message in messages_of(change, at=NOON)] == []


def test_an_idle_job_that_comes_back() -> None:
    change = back(
        trains(state=JobState.PREEMPTING),
        JobState.PREEMPTED,
        "idle-requeue",
        "its GPUs did nothing",
        ended={"lost": minutes(5)},
    )
    notice = told(change)
    assert notice.kind is NoticeKind.JOB_REQUEUED
    assert notice.what.startswith(
        "Job train-1 was stopped while its GPUs were idle and is back in the queue."
    )
    assert notice.detail["lost_to"] == "idle"


def test_a_spot_job_that_moves_to_on_demand_is_told_once_and_as_that() -> None:
    change = back(
        trains(state=JobState.PREEMPTING, interruptions=4),
        JobState.PREEMPTED,
        "spot-fallback",
        "4 interruptions, 3 are allowed",
        on_demand=True,
    )
    notice = told(change)
    assert notice.kind is NoticeKind.MOVED_TO_ON_DEMAND
    assert notice.why == "4 interruptions, 3 are allowed"
    assert notice.detail["interruptions"] == 4


def test_news_that_end_nothing_are_not_told() -> None:
    one = trains()
    known = replace(one, live=changed(one.live or attempt(), secondary_status="Uploading"))
    assert messages_of(Change(before=one, after=known), at=NOON) == ()


def test_a_lease_that_ran_out_is_not_told() -> None:
    claimed: Attempt = attempt(training_job_arn=None)
    one = live_job(state=JobState.STARTING, live=claimed)
    assert messages_of(Change(before=one, after=steps.unclaimed(one)), at=NOON) == ()
