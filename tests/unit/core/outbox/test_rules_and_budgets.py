"""Who is told what about rules."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.outbox import not_stopped_notice, rule_violated_notice, to_tell, unmanaged_notice
from trainmaster.core.outbox.messages import Notice, NoticeKind
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.rules.violation import Outcome, Violation, ViolationRecord

from tests.builders import NOON

NO_TAG = Violation(
    rule="required_tags",
    field="Tags",
    message="lack model_name",
    hint="add it",
    mode=Mode.AUDIT,
)


def record(outcome: Outcome, *violations: Violation, **fields: Any) -> ViolationRecord:
    values: dict[str, Any] = {
        "at": NOON,
        "training_job_name": "by-hand",
        "team": "vision",
        "role_arn": "arn:aws:iam::111122223333:role/train",
        "unmanaged": True,
    }
    return ViolationRecord(outcome=outcome, violations=violations, **values | fields)


@pytest.mark.parametrize(
    ("outcome", "becomes", "job"),
    [
        pytest.param(Outcome.AUDITED, "It keeps running; this was recorded", None, id="audited"),
        pytest.param(Outcome.ADOPTED, "It was adopted", "by-hand", id="adopted"),
    ],
)
def test_a_job_that_went_round_the_queue_and_what_became_of_it(
    outcome: Outcome, becomes: str, job: str | None
) -> None:
    notice = unmanaged_notice(record(outcome, NO_TAG), runs=True)
    assert notice.kind is NoticeKind.UNMANAGED_JOB
    assert notice.what.startswith(f"Training job by-hand bypassed the queue. {becomes}")
    assert notice.why == "required_tags: Tags lack model_name (add it)"
    assert (notice.team, notice.training_job_name, notice.job) == ("vision", "by-hand", job)
    assert notice.detail == {
        "outcome": outcome.value,
        "role_arn": "arn:aws:iam::111122223333:role/train",
        "violations": [
            {
                "rule": "required_tags",
                "field": "Tags",
                "message": "lack model_name",
                "mode": "audit",
            }
        ],
    }


def test_one_that_had_ended_does_not_go_on() -> None:
    notice = unmanaged_notice(record(Outcome.AUDITED, NO_TAG), runs=False)
    assert notice.what == (
        "Training job by-hand bypassed the queue."
        " It has already ended; this was recorded (`trainmaster violations`)."
    )


def test_one_that_is_stopped_for_a_rule_names_the_enforced_one_first() -> None:
    no_role = replace(NO_TAG, rule="roles", field="RoleArn", message="is not allowed", mode=Mode.ENFORCE)
    notice = unmanaged_notice(record(Outcome.STOPPED, NO_TAG, no_role), runs=True)
    assert notice.what == "Training job by-hand bypassed the queue. It is being stopped."
    assert (
        notice.why == "roles: RoleArn is not allowed (add it); required_tags: Tags lack model_name (add it)"
    )


@pytest.mark.parametrize("outcome", [Outcome.STOPPED, Outcome.NOT_STOPPED])
def test_a_rule_that_is_only_audited_stopped_nobody(outcome: Outcome) -> None:
    notice = unmanaged_notice(record(outcome, NO_TAG), runs=True)
    assert notice.why == "Training jobs of this account belong in the queue."
    assert [one["rule"] for one in notice.detail["violations"]] == ["required_tags"]


def test_one_that_violates_nothing_is_told_of_all_the_same() -> None:
    assert unmanaged_notice(record(Outcome.AUDITED), runs=True).why == (
        "Training jobs of this account belong in the queue."
    )


def test_many_violations_are_counted_in_the_sentence_and_listed_for_programs() -> None:
    notice = unmanaged_notice(record(Outcome.AUDITED, *[NO_TAG] * 7), runs=True)
    assert notice.why.count("required_tags") == 5
    assert notice.why.endswith("; and 2 more")
    assert len(notice.detail["violations"]) == 7


def test_one_that_could_not_be_stopped_says_how_to() -> None:
    assert not_stopped_notice("by-hand", team="vision", why="AccessDenied\nno right") == Notice(
        kind=NoticeKind.UNMANAGED_JOB,
        team="vision",
        training_job_name="by-hand",
        what="Training job by-hand bypassed the queue and could not be stopped. It keeps running.",
        why="AccessDenied no right",
        todo="Stop it by hand: `aws sagemaker stop-training-job --training-job-name by-hand`,"
        " or deploy the stack with StopUnmanagedJobs=true.",
        detail={"outcome": "not-stopped"},
    )


def test_a_queued_job_that_breaks_an_audited_rule_runs_all_the_same() -> None:
    notice = rule_violated_notice(
        record(Outcome.AUDITED, NO_TAG, training_job_name="queued", unmanaged=False)
    )
    assert notice.kind is NoticeKind.RULE_VIOLATED
    assert notice.job == "queued"
    assert notice.what == "Job queued breaks a rule that is audited, not enforced. It runs anyway."


def test_the_same_cause_leaves_the_same_message() -> None:
    notice = unmanaged_notice(record(Outcome.AUDITED), runs=True)
    assert to_tell(notice, cause="by-hand", at=NOON).id == "by-hand#unmanaged-job"
