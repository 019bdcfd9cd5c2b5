"""A pool gets a new order: every job a new score, whatever happens meanwhile."""

from datetime import datetime

import pytest
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.order import score_of
from trainmaster.core.policy import Aging, Order, PoolPolicy
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.score_updates import Reranker, needs_reranking

from tests.builders import NOON, A, claimed, job, minutes, snapshot, waiting
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

LATER = NOON + minutes(1)
BY_AGE = PoolPolicy(name="main", capacity={A: 2})
BY_PRIORITY = PoolPolicy(name="main", capacity={A: 2}, order=Order(aging=None))
AGED = PoolPolicy(name="main", capacity={A: 2}, order=Order(aging=Aging(per=minutes(1), add=1)))


class Pool:
    def __init__(self) -> None:
        tables = Tables()
        self.store, self.reader, self.now = MemoryJobStore(tables), MemoryReader(tables), NOON

    def submitted(self, name: str, *, priority: int, minutes_ago: float) -> Job:
        one = job(name, priority=priority, submitted_at=NOON - minutes(minutes_ago))
        scored = steps.reranked(
            one,
            priority=priority,
            score=score_of(one.spec, priority, BY_PRIORITY),
            ranked_by=BY_PRIORITY.order_key,
        )
        self.store.submit(scored, b"{}")
        return scored

    def change(self, before: Job, after: Job) -> Job:
        (changed,) = self.store.commit([Change(before=before, after=after)], at=NOON)
        return changed

    def rerank(self, rules: PoolPolicy, *, until: datetime = LATER) -> int:
        reranker = Reranker(store=self.store, queue=self.reader, reader=self.reader, clock=self.clock)
        return reranker.run(rules, deadline=Deadline.at(until, self.clock))

    def clock(self) -> datetime:
        self.now += minutes(0.1)
        return self.now

    def turns(self) -> list[str]:
        return [one.name for one in self.reader.waiting("main", after=None, limit=100)]


@pytest.fixture
def pool() -> Pool:
    """An old job of low priority behind a young one of high priority."""
    found = Pool()
    found.submitted("old", priority=0, minutes_ago=60)
    found.submitted("urgent", priority=2, minutes_ago=0)
    return found


def test_the_queue_gets_into_the_new_order(pool: Pool) -> None:
    assert pool.turns() == ["urgent", "old"]
    assert pool.rerank(AGED) == 2
    assert pool.turns() == ["old", "urgent"]


def test_a_second_run_has_nothing_to_do(pool: Pool) -> None:
    pool.rerank(AGED)
    assert pool.rerank(AGED) == 0


def test_running_and_parked_jobs_get_a_score_of_the_new_order_too(pool: Pool) -> None:
    running = pool.submitted("running", priority=1, minutes_ago=5)
    pool.change(running, claimed(running))
    held = pool.submitted("held", priority=1, minutes_ago=5)
    pool.change(held, steps.held(held, Reason(code=ReasonCode.HELD, message="x")))
    assert pool.rerank(AGED) == 4
    for name in ("running", "held"):
        found = pool.reader.job(name)
        assert found is not None
        assert found.ranked_by == AGED.order_key


def test_what_is_left_when_time_is_up_is_done_by_the_next_run(pool: Pool) -> None:
    assert pool.rerank(AGED, until=NOON + minutes(0.25)) == 1
    assert pool.rerank(AGED) == 1
    assert pool.turns() == ["old", "urgent"]


def test_a_pool_is_in_order_only_when_every_job_is(pool: Pool) -> None:
    mine = waiting("a", ranked_by=BY_AGE.order_key)
    assert not needs_reranking(snapshot(mine, order_key=BY_AGE.order_key), BY_AGE)
    assert needs_reranking(snapshot(mine, order_key=BY_PRIORITY.order_key), BY_AGE)
    late = waiting("b", ranked_by=BY_PRIORITY.order_key)
    assert needs_reranking(snapshot(mine, late, order_key=BY_AGE.order_key), BY_AGE)
