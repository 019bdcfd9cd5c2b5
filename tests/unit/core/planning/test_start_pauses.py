"""What jobs of a paused role are told, and who of them tries."""

from dataclasses import replace

from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.actions import Start, subject
from trainmaster.core.planning.planner import plan
from trainmaster.core.planning.refusal_records import role_digest, starts_key
from trainmaster.core.planning.snapshot import Snapshot, WaitingJob

from tests.builders import NOON, minutes, of, pool, waiting
from tests.properties.test_start_pauses import PAUSED, paused

LAUNCHER = "arn:aws:iam::111122223333:role/trainmaster-launcher-vision"


def of_role(
    name: str, *, refused: int | None = None, team: str = "vision", minutes_ago: int = 0
) -> WaitingJob:
    job = waiting(name, team=team, minutes_ago=minutes_ago)
    return replace(job, role=PAUSED, turned_down=refused)


def tries(*jobs: WaitingJob, used: int = 0) -> list[str]:
    snapshot = Snapshot(
        used=of(used) if used else {}, waiting=jobs, role_starts={PAUSED: paused(is_due=True)}
    )
    actions = plan(snapshot, pool(capacity=2), now=NOON).actions
    return [one.job.name for one in actions if isinstance(one, Start) and one.probes_role]


def test_who_was_refused_least_often_tries_first_and_among_them_the_first_in_turn() -> None:
    first = of_role("first", refused=3, minutes_ago=9)
    second = of_role("second", minutes_ago=8)
    third = of_role("third", minutes_ago=7)
    assert tries(first, second, third) == ["second"]
    assert tries(first) == ["first"]


def test_where_the_least_refused_do_not_fit_one_that_was_refused_more_often_tries() -> None:
    wide = replace(of_role("wide", minutes_ago=9), shapes=waiting("x", vector=of(9)).shapes)
    assert tries(wide, of_role("narrow", refused=3)) == ["narrow"]


def test_nobody_tries_where_nothing_is_free() -> None:
    assert tries(of_role("first"), used=2) == []


def test_a_team_with_a_launcher_is_not_concerned_by_the_pause_of_those_without() -> None:
    jobs = (of_role("with", team="vision"), of_role("without", team="speech"))
    snapshot = Snapshot(
        waiting=jobs,
        role_starts={PAUSED: paused(is_due=False)},
        launchers={"vision": LAUNCHER},
    )
    actions = plan(snapshot, pool(capacity=2), now=NOON).actions
    assert [subject(one) for one in actions] == ["with"]
    whole = replace(snapshot, role_starts={starts_key(PAUSED, LAUNCHER): paused(is_due=False)})
    actions = plan(whole, pool(capacity=2), now=NOON).actions
    assert [subject(one) for one in actions] == ["without"]


def test_aws_s_words_about_another_team_s_job_are_not_quoted() -> None:
    reason = wait_reasons.starts_paused(paused(is_due=False), "main", to="speech")
    assert "AccessDeniedException" in reason.message
    assert "AccessDeniedException: no" not in reason.message
    own = wait_reasons.starts_paused(paused(is_due=False), "main", to="vision")
    assert "AccessDeniedException: no" in own.message


def test_the_next_try_is_named_so_that_a_stored_reason_stays_true() -> None:
    reason = wait_reasons.starts_paused(paused(is_due=False), "main", to="vision")
    assert (NOON + minutes(1)).strftime("the next one at %Y-%m-%d %H:%M UTC or later") in reason.message


def test_a_role_is_told_apart_by_its_whole_arn() -> None:
    assert role_digest("arn:aws:iam::1:role/a") != role_digest("arn:aws:iam::2:role/a")
