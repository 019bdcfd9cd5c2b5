"""Row J17: a keep-alive shorter than the time in which it is extended."""

from datetime import datetime, timedelta

import pytest
from trainmaster.core.planning.actions import KeepWarm
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.core.planning.warm_pools import Upkeep
from trainmaster.core.policy import WarmPool as WarmRules

from tests.builders import NOON, minutes, of

LOOKS = timedelta(seconds=1)
"""Between two looks, as passes in a row make them."""


@pytest.mark.parametrize("keep_alive", [minutes(1), minutes(2)])
def test_J17_a_short_keep_alive_is_extended_twice_a_minute_at_most(keep_alive: timedelta) -> None:
    rules = WarmRules(keep_alive=keep_alive, retain=minutes(10), max_idle=minutes(30))
    pool = WarmPool(
        training_job_name="old",
        team="default",
        vector=of(1),
        warm_key="k",
        since=NOON,
        expires_at=NOON + keep_alive,
    )
    extended: list[datetime] = []
    now = NOON
    while now < NOON + minutes(9):
        action = _action(rules, pool, now)
        if isinstance(action, KeepWarm):
            extended.append(now)
            pool = _kept(pool, action.until)
            assert not isinstance(_action(rules, pool, now), KeepWarm), "the next look has nothing to do"
        now += LOOKS
    assert extended, "it is kept for as long as the pool retains it"
    for at in extended:
        assert len([other for other in extended if timedelta() <= other - at < minutes(1)]) <= 2
    assert pool.expires_at > now


def _action(rules: WarmRules, pool: WarmPool, now: datetime) -> object:
    nobody: frozenset[str] = frozenset()
    upkeep = Upkeep(rules=rules, reused=nobody, released=nobody, wanted=nobody, limited=frozenset(), now=now)
    return next(iter(upkeep.actions([pool])), None)


def _kept(pool: WarmPool, until: datetime) -> WarmPool:
    return WarmPool(
        training_job_name=pool.training_job_name,
        team=pool.team,
        vector=pool.vector,
        warm_key=pool.warm_key,
        since=pool.since,
        expires_at=until,
    )
