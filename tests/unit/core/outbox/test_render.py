"""A notice as programs and as people get it."""

from dataclasses import replace

import pytest
from trainmaster.core.outbox import budget_notice, to_tell
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.outbox.render import MAILED, event_detail, is_mailed, mail_of

from tests.builders import NOON

NOTICE = Notice(
    kind=NoticeKind.JOB_FAILED,
    team="vision",
    job="train-1",
    training_job_name="train-1-r1-abc123",
    what="Job train-1 failed.",
    why="A bug.",
    todo="Fix it.",
    detail={"attempt": 1},
)
MESSAGE = to_tell(NOTICE, cause="01J#000008", at=NOON)


def test_an_event_has_its_version_its_id_and_what_belongs_to_its_kind() -> None:
    assert event_detail(MESSAGE) == {
        "version": "1",
        "id": "01J#000008#job-failed",
        "at": "2026-11-02T12:00:00.000Z",
        "team": "vision",
        "job": "train-1",
        "training_job_name": "train-1-r1-abc123",
        "what": "Job train-1 failed.",
        "why": "A bug.",
        "todo": "Fix it.",
        "attempt": 1,
    }


def test_a_mail_says_what_why_what_to_do_and_where_it_comes_from() -> None:
    mail = mail_of([MESSAGE], stack="prod")
    assert mail.subject == "[trainmaster] Job Failed: train-1"
    assert mail.text == (
        "Job train-1 failed.\n\n"
        "Why: A bug.\n\n"
        "What to do: Fix it.\n\n"
        "Stack prod, team vision, 2026-11-02T12:00:00.000Z, message 01J#000008#job-failed\n"
    )
    assert mail.attributes == {"team": "vision", "kind": "Job Failed"}


def test_a_mail_about_no_job_is_about_the_team() -> None:
    notice = budget_notice("vision", month="2026-11", spent_cents=810_000, limit_cents=1_000_000)
    mail = mail_of([to_tell(notice, cause="vision#2026-11", at=NOON)], stack="prod")
    assert mail.subject == "[trainmaster] Budget Warning: vision"
    assert mail.text.startswith("Team vision has spent $8,100.00 of its $10,000.00 for 2026-11.\n")


def test_only_what_happens_all_day_is_not_mailed() -> None:
    assert set(NoticeKind) - MAILED == {
        NoticeKind.JOB_COMPLETED,
        NoticeKind.JOB_PREEMPTED,
        NoticeKind.JOB_BUSY_AGAIN,
    }


@pytest.mark.parametrize("charged", [True, False])
def test_a_retry_is_mailed_if_it_is_charged(charged: bool) -> None:  # noqa: FBT001
    retried = replace(NOTICE, kind=NoticeKind.JOB_RETRIED, detail={"charged": charged})
    assert is_mailed(retried) is charged


def test_several_of_a_kind_are_one_mail_with_all_of_them_in_it() -> None:
    other = to_tell(replace(NOTICE, job="train-2", what="Job train-2 failed."), cause="01K#000002", at=NOON)
    mail = mail_of([MESSAGE, other], stack="prod")
    assert mail.subject == "[trainmaster] Job Failed: 2 of team vision"
    assert mail.text.count("Job train-1 failed.") == mail.text.count("Job train-2 failed.") == 1
    assert mail.text.index("message 01J#000008#job-failed") < mail.text.index("Job train-2 failed.")
    assert mail.text.endswith("message 01K#000002#job-failed\n")
    assert mail.attributes == {"team": "vision", "kind": "Job Failed"}
