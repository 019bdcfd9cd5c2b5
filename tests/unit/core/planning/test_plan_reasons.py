"""Reasons of a plan are put into words once somebody asks, and are then what they would have been at once."""

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.plan_reasons import Later, PlanReasons
from trainmaster.core.planning.planner import plan

from tests.builders import NOON, minutes, pool, running, snapshot, waiting

WHY = Reason(code=ReasonCode.CAPACITY, message="needs a=1, free a=0")


def test_words_are_made_once_and_only_for_who_asks() -> None:
    made: list[str] = []

    def words() -> Reason:
        made.append("words")
        return WHY

    same = Later(words)
    reasons = PlanReasons({"one": same, "two": same, "three": WHY})
    assert (list(reasons), len(reasons), "one" in reasons, made) == (["one", "two", "three"], 3, True, [])
    assert [reasons["one"], reasons["two"], reasons["three"]] == [WHY] * 3
    assert made == ["words"]


def test_reasons_are_compared_by_their_words() -> None:
    later = PlanReasons({"one": Later(lambda: WHY)})
    assert later == {"one": WHY}
    assert later != {"one": wait_reasons.PAUSED}


def test_two_plans_of_the_same_are_equal_also_when_only_one_of_them_was_read() -> None:
    world = snapshot(running("r", priority=9, n=2), *(waiting(f"w{n}", minutes_ago=9 - n) for n in range(3)))
    read, unread = (plan(world, pool(2), now=NOON) for _ in range(2))
    assert read.reasons["w2"].message.startswith("w0 is ahead")
    assert read == unread
    assert read != plan(snapshot(*world.waiting), pool(2), now=NOON + minutes(1))
