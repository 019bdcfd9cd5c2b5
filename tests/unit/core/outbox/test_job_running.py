"""Who is told what while a job runs."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.outbox import messages_of
from trainmaster.core.outbox.messages import Notice, NoticeKind

from tests.builders import NOON, attempt, changed, live_job, minutes

SILENT = Reason(code=ReasonCode.ALARM_QUOTA, message="CloudWatch allows no more alarms")
NO_ON_DEMAND = Reason(code=ReasonCode.NO_ON_DEMAND_CAPACITY, message="the pool has no on-demand ml.a.xlarge")


def news(before: dict[str, Any], after: dict[str, Any], state: JobState = JobState.RUNNING) -> Change:
    """The live attempt with these fields, and with those."""
    one = live_job(team="vision", live=attempt(**before))
    assert one.live is not None
    return Change(before=one, after=replace(one, state=state, live=changed(one.live, **after)))


def told(change: Change) -> Notice:
    (message,) = messages_of(change, at=NOON)
    assert message.notice is not None
    return message.notice


def test_the_warning_says_since_when_and_when_it_is_stopped() -> None:
    notice = told(news({}, {"idle_since": NOON, "stop_due": NOON + minutes(10)}))
    assert notice == Notice(
        kind=NoticeKind.JOB_IDLE,
        team="vision",
        job="train-1",
        training_job_name="train-1",
        what="The GPUs of job train-1 have been idle since 2026-11-02 12:00 UTC."
        " It is stopped at 2026-11-02 12:10 UTC unless they work again by then.",
        why="The busiest of its hosts is below what the policy calls idle (`idle.gpu_below_percent`).",
        todo="See in its log what they wait for. `trainmaster cancel train-1` frees them now.",
        undo="It counts as idle no longer once its GPUs work again.",
        detail={
            "attempt": 0,
            "idle_since": "2026-11-02T12:00:00.000Z",
            "stop_due": "2026-11-02T12:10:00.000Z",
        },
    )


def test_where_the_policy_only_notifies_no_stop_is_announced() -> None:
    notice = told(news({}, {"idle_since": NOON}))
    assert notice.what.endswith("Nothing happens automatically.")
    assert "stop_due" not in notice.detail


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        pytest.param({"idle_since": NOON}, {"idle_since": None}, NoticeKind.JOB_BUSY_AGAIN, id="busy again"),
        pytest.param({}, {"underused_since": NOON}, NoticeKind.JOB_UNDERUSED, id="underused"),
        pytest.param({}, {"unguarded": SILENT}, NoticeKind.JOB_UNGUARDED, id="unguarded"),
        pytest.param(
            {}, {"checkpoint_overdue": True}, NoticeKind.CHECKPOINT_OVERDUE, id="checkpoint overdue"
        ),
        pytest.param({}, {"stays_on_spot": NO_ON_DEMAND}, NoticeKind.STAYS_ON_SPOT, id="stays on spot"),
    ],
)
def test_each_decision_is_told_once(before: dict[str, Any], after: dict[str, Any], kind: NoticeKind) -> None:
    assert told(news(before, after)).kind is kind
    assert messages_of(news(before | after, after), at=NOON) == ()


@pytest.mark.parametrize(
    "ended",
    [
        pytest.param({"underused_since": NOON}, id="used well again"),
        pytest.param({"unguarded": SILENT}, id="guarded again"),
        pytest.param({"checkpoint_overdue": True}, id="a new checkpoint"),
    ],
)
def test_what_is_over_is_not_told(ended: dict[str, Any]) -> None:
    cleared = {"underused_since": None, "unguarded": None, "checkpoint_overdue": False}
    assert messages_of(news(ended, cleared), at=NOON) == ()


def test_why_is_what_was_found() -> None:
    assert told(news({}, {"unguarded": SILENT})).why == "CloudWatch allows no more alarms"
    assert told(news({}, {"stays_on_spot": NO_ON_DEMAND})).why == "the pool has no on-demand ml.a.xlarge"


def test_the_newest_checkpoint_is_named_if_there_is_one() -> None:
    assert told(news({}, {"checkpoint_overdue": True})).what == (
        "Job train-1 has no recent checkpoint: none was seen. A stop would lose all of its training."
    )
    notice = told(news({"last_checkpoint": NOON}, {"checkpoint_overdue": True}))
    assert notice.what.startswith(
        "Job train-1 has no recent checkpoint: the newest is from 2026-11-02 12:00 UTC."
    )
    assert notice.detail["last_checkpoint"] == "2026-11-02T12:00:00.000Z"


def test_a_job_that_is_being_stopped_is_not_warned() -> None:
    assert messages_of(news({}, {"idle_since": NOON}, JobState.STOPPING), at=NOON) == ()


def test_two_decisions_of_one_change_are_two_notices() -> None:
    messages = messages_of(news({}, {"idle_since": NOON, "checkpoint_overdue": True}), at=NOON)
    assert [message.id.rpartition("#")[2] for message in messages] == ["job-idle", "checkpoint-overdue"]
