"""A replay of an account that allows less than the policy promises."""

from dataclasses import replace

import pytest
from trainmaster_client.simulate.engine.past_jobs import AccountBounds, PastJob
from trainmaster_client.simulate.engine.replays import Replay
from trainmaster_client.simulate.io.replaying import plain_queue, replay

from tests.unit.client.simulate.replayed import G5, HIGH, attempts, history, job, policy


def product(account: AccountBounds, *jobs: PastJob, instances: int = 2) -> Replay:
    return replay(replace(history(*jobs), account=account), policy(instances), label="product")


def plain(account: AccountBounds, *jobs: PastJob, instances: int = 2) -> Replay:
    return plain_queue(replace(history(*jobs), account=account), policy(instances))


ONE = AccountBounds(instances={G5: 1})


@pytest.mark.parametrize("decided", [pytest.param(product, id="product"), pytest.param(plain, id="plain")])
def test_a_start_beyond_what_the_account_allows_waits_for_an_end(decided: object) -> None:
    found = attempts(decided(ONE, job("a"), job("b", at=10)))  # type: ignore[operator]
    assert found["a", 0].start_s == 0
    assert 1240 <= found["b", 0].start_s <= 1300


def test_of_those_that_the_account_refused_the_highest_starts_first() -> None:
    jobs = [job("a", trains=9000, saves=600), job("refused", at=1000), job("b", at=2000, priority=HIGH)]
    found = attempts(product(ONE, *jobs))
    assert [one.job for one in sorted(found.values(), key=lambda one: one.start_s)] == ["a", "b", "refused"]
    assert found["b", 0].start_s == found["a", 0].end_s


def test_a_plain_queue_believes_the_policy_and_stops_nobody() -> None:
    found = attempts(plain(ONE, job("a", trains=9000, saves=600), job("b", at=2000, priority=HIGH)))
    assert found["b", 0].start_s == found["a", 0].end_s == 9240


@pytest.mark.parametrize("decided", [pytest.param(product, id="product"), pytest.param(plain, id="plain")])
def test_starts_take_turns_where_the_account_creates_so_many_a_second(decided: object) -> None:
    paced = AccountBounds(start_gap_s=10)
    found = attempts(decided(paced, job("a"), job("b"), job("c", at=500), instances=3))  # type: ignore[operator]
    assert [found[name, 0].train_s for name in "abc"] == [240, 250, 740]
    assert [found[name, 0].start_s for name in "abc"] == [0, 0, 500]


def test_an_instance_that_was_made_free_for_a_start_that_is_refused_goes_back_to_who_was_stopped() -> None:
    """It is not kept for the refused one any longer, and that one stops nobody again."""
    lows = [job(f"low{number}", trains=9000, saves=600) for number in range(3)]
    urgent = job("urgent", at=2000, n=2, priority=HIGH)
    found = attempts(product(AccountBounds(instances={G5: 3}), *lows, urgent, instances=4))
    ((stopped, number),) = [key for key, one in found.items() if one.end == "preempted"]
    assert number == 0
    assert found[stopped, 1].start_s - found[stopped, 0].end_s <= 60
    assert found["urgent", 0].end == "completed"
