"""Where the account refuses more instances, warm pools go to the next in turn."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.jobs.start_troubles import AccountRefusals
from trainmaster.core.planning.refusal_records import AccountLimit
from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import WarmPool as WarmRules

from tests.builders import NOON, minutes, of, pool, running, snapshot, waiting
from tests.unit.core.planning.plans import decided, quota, shape, shared, told, warm

RULES = replace(pool(9), warm_pool=WarmRules())
LIMITED = AccountLimit(limit=2, until=NOON + minutes(5), refusals=2)
IDLE = warm("idle", key="k", left=8)
"""Only ``later`` can use it."""


def world(
    limit: AccountLimit = LIMITED, *, first: Mapping[str, Any] | None = None, **fields: Any
) -> Snapshot:
    """``first`` goes first and would start cold, ``later`` would land in the warm pool."""
    (capacity,) = of(1)
    asks: dict[str, Any] = {"shapes": (shape(key="x"),), **(first or {})}
    values: dict[str, Any] = {"warm": of(1), "warm_pools": (IDLE,), **fields}
    return snapshot(
        running("r", priority=9),
        waiting("first", priority=9, **asks),
        waiting("later", shapes=(shape(key="k"),)),
        account_limits={capacity: limit},
        **values,
    )


def refused(count: int) -> AccountRefusals:
    return AccountRefusals(count=count, again_at=NOON + minutes(1))


def test_the_next_in_turn_gets_its_room() -> None:
    assert decided(world(), RULES) == [("release warm", "idle")]
    code, message = told(world(), RULES, "first")
    assert (code, message) == ("capacity", "needs ml.a.xlarge=1; warm pools being released for it: 1")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            world(replace(LIMITED, until=NOON)),
            [("start", "first")],
            id="not where it is time to ask the account again",
        ),
        pytest.param(
            world(replace(LIMITED, limit=3)),
            [("start", "first"), ("start", "later")],
            id="not where it is below the limit",
        ),
        pytest.param(
            world(first={"shapes": (shape(key="k"),)}),
            [("start", "first")],
            id="not where it can use one itself",
        ),
        pytest.param(
            world(first={"shapes": (shape(2, key="x"),)}),
            [("start", "later")],
            id="not where that is not enough",
        ),
        pytest.param(
            world(
                warm=of(2), warm_pools=(IDLE, warm("gone", releasing=True)), limit=replace(LIMITED, limit=3)
            ),
            [("start", "later"), ("settle warm", "gone")],
            id="not where another one is on its way out",
        ),
        pytest.param(
            world(first={"refused": refused(1)}),
            [("release warm", "idle")],
            id="to a job that was refused like others",
        ),
        pytest.param(
            world(replace(LIMITED, refusals=1), first={"refused": refused(1)}),
            [("start", "later")],
            id="not to the only one that was refused",
        ),
        pytest.param(
            world(first={"refused": refused(5)}),
            [("start", "later")],
            id="not to one that was refused often",
        ),
    ],
)
def test_whether_it_goes_to_the_next_in_turn(found: Snapshot, expected: list[tuple[str, ...]]) -> None:
    assert decided(found, RULES) == expected


def test_each_in_turn_gets_one() -> None:
    both = (IDLE, warm("other", key="k", left=9))
    jobs = (waiting("a", priority=9), waiting("b", priority=8), waiting("c", shapes=(shape(key="k"),)))
    (capacity,) = of(1)
    found = snapshot(*jobs, warm=of(2), warm_pools=both, account_limits={capacity: LIMITED})
    assert decided(found, RULES) == [("release warm", "idle"), ("release warm", "other")]


def test_a_team_at_its_quota_takes_none() -> None:
    rules = replace(shared(9, {"default": quota(1, 0)}), warm_pool=WarmRules())
    assert ("release warm", "idle") not in decided(world(), rules)
