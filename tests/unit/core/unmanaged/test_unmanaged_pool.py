"""The pool of what belongs to none."""

from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.planner import plan
from trainmaster.core.policy import UNMANAGED_POOL
from trainmaster.core.unmanaged.decisions import AMPLE, rules_for

from tests.builders import NOON, A, B, of, pool, running, snapshot, waiting


def test_there_is_room_for_every_type_that_is_there() -> None:
    seen = snapshot(
        running("a", n=7), waiting("b", vector=of(3, B)), due=(waiting("c", vector=of(1, "ml.c.large")),)
    )
    rules = rules_for(UNMANAGED_POOL, seen)
    assert rules.capacity == rules.spot_capacity == {A: AMPLE, B: AMPLE, "ml.c.large": AMPLE}
    assert rules.name == "-"


def test_other_pools_keep_what_they_have() -> None:
    rules = pool(2)
    assert rules_for(rules, snapshot(running("a", n=7))) is rules


def test_whoever_waits_there_starts() -> None:
    seen = snapshot(running("a", n=7), waiting("b", n=9), waiting("c", vector=of(2, B, spot=True)))
    rules = rules_for(UNMANAGED_POOL, seen)
    started = [one.job.name for one in plan(seen, rules, now=NOON).actions if isinstance(one, Start)]
    assert sorted(started) == ["b", "c"]
