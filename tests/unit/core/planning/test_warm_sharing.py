"""Kinds of jobs that could use each other's warm pools: which are named, and what it would have saved."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.planning.warm_history import LATEST_STARTS, KeyStart, WarmHistory
from trainmaster.core.planning.warm_sharing import (
    FEWEST,
    HANDED_ON,
    MOST_ADVICE,
    Difference,
    SharingAdvice,
    WarmKind,
    sharing_advice,
)
from trainmaster.core.policy import WarmPool as WarmRules
from trainmaster.core.request.asked_shapes import matching_fields, warm_key

from tests.builders import NOON, minutes

COLD, WARM = minutes(4), minutes(1)
KEPT = WarmRules(retain=minutes(5))
DAY = timedelta(days=1)


def request(
    role: str = "a", volume: int | None = 50, *, subnets: Sequence[str] = ("subnet-1",), **fields: Any
) -> dict[str, Any]:
    resources = {} if volume is None else {"VolumeSizeInGB": volume}
    network = {"Subnets": list(subnets), "SecurityGroupIds": ["sg-1"]}
    return {"RoleArn": role, "ResourceConfig": resources, "VpcConfig": network} | fields


def kind(
    *times: tuple[int, int],
    team: str = "vision",
    count: int = 1,
    body: dict[str, Any] | None = None,
    waited: timedelta = timedelta(),
) -> WarmKind:
    """Build jobs that started and ended so many minutes after noon, and had waited this long."""
    starts = [NOON + minutes(start) for start, _ in times]
    ends = [NOON + minutes(end) for _, end in times]
    history = WarmHistory(
        starts=tuple(
            sorted((KeyStart(at=at, ready=at - waited, team=team) for at in starts), key=_at, reverse=True)
        ),
        ends=tuple(sorted(ends, reverse=True)),
        cold=(COLD,),
        warm=(WARM,),
        job=f"{team}-1",
    )
    return WarmKind(fields=matching_fields(body or request(), "ml.p5.48xlarge", count), history=history)


def _at(start: KeyStart) -> Any:
    return start.at


def advice(*kinds: WarmKind, rules: WarmRules = KEPT) -> tuple[SharingAdvice, ...]:
    return sharing_advice(kinds, rules, now=NOON + DAY)


IN_TURN = ((0, 10), (40, 50), (80, 90))
BETWEEN = ((12, 22), (52, 62), (92, 102))
"""Each starts two minutes after one of ``IN_TURN`` has ended, and ends long before the next of them."""


def test_jobs_that_differ_only_in_volume_would_have_used_what_the_others_left() -> None:
    small, large = kind(*IN_TURN), kind(*BETWEEN, team="nlp", body=request(volume=200))
    (one,) = advice(small, large)
    assert one.differ_in == (Difference.VOLUME,)
    assert [each.teams for each in one.kinds] == [("vision",), ("nlp",)]
    assert (one.starts, one.apart.warm, one.together.warm) == (6, 0, 3)
    assert one.saves == 3 * (COLD - WARM)
    # Apart each of six ends keeps its instances in vain for five minutes; together three do, and three two.
    assert (one.apart.idle, one.together.idle) == (6 * minutes(5), 3 * minutes(2) + 3 * minutes(5))
    assert one.idles == -minutes(9)
    assert one.since == NOON


@pytest.mark.parametrize(
    ("other", "differ_in"),
    [
        pytest.param(request(role="b"), (Difference.ROLE,), id="role"),
        pytest.param(request(volume=None), (Difference.VOLUME,), id="no volume"),
        pytest.param(request(subnets=["subnet-2"]), (Difference.NETWORK,), id="subnets"),
        pytest.param(request(role="b", volume=60), (Difference.ROLE, Difference.VOLUME), id="two"),
    ],
)
def test_what_a_pool_can_set_is_named(other: dict[str, Any], differ_in: tuple[Difference, ...]) -> None:
    assert [one.differ_in for one in advice(kind(*IN_TURN), kind(*BETWEEN, body=other))] == [differ_in]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(kind(*BETWEEN, count=2), id="another number of instances"),
        pytest.param(kind(*BETWEEN, body=request(EnableNetworkIsolation=True)), id="isolation"),
        pytest.param(
            kind(*BETWEEN, body=request(EnableInterContainerTrafficEncryption=True)), id="encryption"
        ),
        pytest.param(
            kind(
                *BETWEEN, body=request() | {"ResourceConfig": {"VolumeSizeInGB": 50, "VolumeKmsKeyId": "k"}}
            ),
            id="another key",
        ),
        pytest.param(kind(*BETWEEN, body=request("b", 60, subnets=["subnet-2"])), id="three differences"),
        pytest.param(kind(*BETWEEN), id="none"),
    ],
)
def test_what_no_pool_can_set_or_differs_too_much_is_not_named(other: WarmKind) -> None:
    assert advice(kind(*IN_TURN), other) == ()


def test_two_differences_are_named_only_if_that_saves_more_than_one() -> None:
    first, second = kind(*IN_TURN), kind(*BETWEEN, body=request(volume=60))
    late = kind((200, 210), body=request("b", 60))
    assert [one.differ_in for one in advice(first, second, late)] == [(Difference.VOLUME,)]
    chain = kind((24, 30), (64, 70), (104, 110), body=request("b", 60))
    single = [(Difference.VOLUME,), (Difference.ROLE,)]
    assert sorted(one.differ_in for one in advice(first, second, chain)) == sorted(single)
    after_first = kind(*BETWEEN, body=request("b", 60))
    both = advice(first, kind((200, 210), body=request(volume=60)), after_first)
    assert [(one.differ_in, one.together.warm) for one in both] == [((Difference.ROLE, Difference.VOLUME), 3)]


def test_more_than_two_kinds_are_one_group() -> None:
    others = [kind(*BETWEEN, body=request(volume=60)), kind((24, 30), (64, 70), body=request(volume=70))]
    (one,) = advice(kind(*IN_TURN), *others)
    assert (len(one.kinds), one.together.warm) == (3, 5)


def test_a_single_further_warm_start_is_luck() -> None:
    assert FEWEST == 2
    assert advice(kind(*IN_TURN), kind(BETWEEN[0], body=request(volume=60))) == ()
    assert len(advice(kind(*IN_TURN), kind(*BETWEEN[:2], body=request(volume=60)))) == 1


def test_jobs_of_one_kind_that_follow_each_other_already_gain_nothing() -> None:
    busy = kind((0, 10), (12, 22), (24, 34), (36, 46))
    assert advice(busy, kind((500, 510), (600, 610), body=request(volume=60))) == ()


def test_what_costs_more_idle_time_than_it_saves_is_not_named() -> None:
    # A start after 4 minutes saves 3 minutes: with these records no kind keeps its instances that long.
    late = [(start + 2, end + 2) for start, end in BETWEEN]
    assert advice(kind(*IN_TURN), kind(*late, body=request(volume=60)), rules=WarmRules()) == ()
    soon = [(start - 1, end - 1) for start, end in BETWEEN]
    (one,) = advice(kind(*IN_TURN), kind(*soon, body=request(volume=60)), rules=WarmRules())
    assert (one.together.warm, one.apart.idle) == (3, timedelta())
    assert one.together.idle == 6 * minutes(1), "three in vain, and three until the next job"


def test_a_job_that_waited_takes_what_comes_free_at_once() -> None:
    waiting = kind(*BETWEEN, body=request(volume=60), waited=minutes(30))
    (one,) = advice(kind(*IN_TURN), waiting, rules=WarmRules(retain=timedelta()))
    assert (one.together.warm, one.idles) == (3, timedelta())


def test_a_job_that_waited_for_something_else_is_not_counted() -> None:
    later = HANDED_ON // minutes(1) + 1
    starts = [(end + later, end + later + 3) for _, end in IN_TURN]
    waiting = kind(*starts, body=request(volume=60), waited=minutes(30))
    assert advice(kind(*IN_TURN), waiting) == ()


def test_a_job_that_came_back_counts_from_its_start() -> None:
    def came_back(after: int) -> WarmKind:
        one = kind(*((end + after, end + after + 3) for _, end in IN_TURN), body=request(volume=60))
        starts = tuple(replace(start, ready=None) for start in one.history.starts)
        return replace(one, history=replace(one.history, starts=starts))

    assert [one.together.warm for one in advice(kind(*IN_TURN), came_back(5))] == [3]
    assert advice(kind(*IN_TURN), came_back(6)) == ()


def test_only_the_time_is_compared_of_which_all_starts_and_ends_are_known() -> None:
    full = kind(*((40 * number, 40 * number + 10) for number in range(20, 20 + LATEST_STARTS)))
    others = kind(
        *((40 * number + 12, 40 * number + 22) for number in range(17, 25)), body=request(volume=60)
    )
    (one,) = advice(full, others)
    assert one.since == NOON + minutes(40 * 20 + 10), "its oldest known end"
    assert (one.starts, one.together.warm) == (LATEST_STARTS - 1 + 5, 5)


def test_without_a_known_start_up_nothing_is_saved() -> None:
    def unknown(one: WarmKind) -> WarmKind:
        return replace(one, history=replace(one.history, cold=(), warm=()))

    assert advice(unknown(kind(*IN_TURN)), unknown(kind(*BETWEEN, body=request(volume=60)))) == ()


@pytest.mark.parametrize("history", [WarmHistory(), WarmHistory(cold=(COLD,))])
def test_a_record_without_starts_says_nothing(history: WarmHistory) -> None:
    empty = WarmKind(fields=matching_fields(request(volume=60), "ml.p5.48xlarge", 1), history=history)
    assert advice(kind(*IN_TURN), empty) == ()
    assert advice(empty) == ()


def test_of_very_many_groups_those_that_save_most_are_named() -> None:
    kinds = []
    for number in range(MOST_ADVICE + 1):
        starts = BETWEEN if number else BETWEEN[:2]
        kinds += [
            kind(*IN_TURN, count=number + 1),
            kind(*starts, count=number + 1, body=request(volume=60)),
        ]
    found = advice(*kinds)
    assert len(found) == MOST_ADVICE
    assert 1 not in {one.kinds[0].fields["InstanceCount"] for one in found}


def test_the_digest_of_what_has_to_match_is_the_stored_one() -> None:
    body = {
        "RoleArn": "arn:aws:iam::111122223333:role/a",
        "ResourceConfig": {"VolumeSizeInGB": 50, "VolumeKmsKeyId": "k"},
        "VpcConfig": {"Subnets": ["subnet-2", "subnet-1"], "SecurityGroupIds": ["sg-1"]},
        "EnableNetworkIsolation": True,
    }
    vector = {Capacity("ml.p5.48xlarge"): 2}
    assert warm_key(body, vector) == "e5a5ddf28a3f0cae", "rows of earlier releases have it"
    assert warm_key(body, vector, subnet="subnet-1") == "9b434e986802ca0f"
    assert (
        warm_key({"RoleArn": "r", "ResourceConfig": {}}, {Capacity("ml.g5.xlarge"): 1}) == "43883e1340f0ea2b"
    )
