"""Jobs of a full pool that wait for others: a chain, or children of one job; and the end of the chain."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

from trainmaster.adapters.dynamodb import DynamoJobStore, DynamoReader
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.end_conditions import Condition, ConditionKind, Dependencies
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.dependents import with_conditions
from trainmaster.core.policy import PoolPolicy, parse_policy
from trainmaster.ports import Mailer, Notifier
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.passes import Scheduler

from benchmarks.deep_queue import BODY, CHUNK, POOL, RETENTION_DAYS, DeepQueue
from benchmarks.table_fill import Rows, Send

CHAIN_PASS_S = 20.0
"""How long a pass may take, as in the function."""
MOST_PASSES = 50


@dataclass(slots=True, kw_only=True)
class Dependents:
    """The jobs of one queue that wait behind its first job."""

    queue: DeepQueue
    store: DynamoJobStore
    reader: DynamoReader

    @classmethod
    def over(cls, queue: DeepQueue, client: Any) -> "Dependents":
        store = DynamoJobStore(client, table=queue.table, retention_days=RETENTION_DAYS)
        return cls(queue=queue, store=store, reader=DynamoReader(client, table=queue.table))

    @property
    def root(self) -> str:
        return self.queue.name(0)

    def name(self, number: int) -> str:
        return f"link-{number:06d}"

    def add_chain(self, links: int) -> None:
        """Submit so many jobs, each after the one before, the first after the first job of the queue."""
        pool, now = parse_policy(self.queue.policy).pools[0], datetime.now(UTC)
        parent = self._job(self.root)
        for number in range(links):
            child = self._after(parent, self.name(number), number, pool=pool, now=now)
            self.store.submit(child, BODY)
            parent = child

    def add_children(self, children: int, send: Send) -> None:
        """Write the rows of so many jobs that wait for the first job of the queue, in bulk."""
        pool, now = parse_policy(self.queue.policy).pools[0], datetime.now(UTC)
        parent, rows = self._job(self.root), Rows()
        store = DynamoJobStore(rows, table=self.queue.table, retention_days=RETENTION_DAYS)
        for number in range(children):
            store.submit(self._after(parent, self.name(number), number, pool=pool, now=now), BODY)
            if number % CHUNK == CHUNK - 1:
                rows.send(self.queue.table, send)
        rows.send(self.queue.table, send)

    def _job(self, name: str) -> Job:
        job = self.reader.job(name)
        assert job is not None, name
        return job

    @staticmethod
    def _after(parent: Job, name: str, number: int, *, pool: PoolPolicy, now: datetime) -> Job:
        spec = replace(parent.spec, name=name, entry_id=f"02{number:024d}", submitted_at=now)
        condition = Condition(
            kind=ConditionKind.AFTER_OK,
            job=parent.name,
            entry_id=parent.spec.entry_id,
            team=parent.spec.team,
        )
        new = replace(
            parent, spec=spec, ver=0, has_dependents=None, after=None, waiting=None, not_before=None
        )
        return with_conditions(new, Dependencies(conditions=(condition,)), pool=pool, now=now)

    def cancel_root(self) -> None:
        job = self._job(self.root)
        reason = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped")
        now = datetime.now(UTC)
        after = steps.cancelled(job, reason=reason, now=now)
        self.store.commit([Change(before=job, after=after)], at=now)

    def ended(self, links: int) -> int:
        jobs = self.reader.jobs(self.name(number) for number in range(links))
        return sum(job.is_final for job in jobs.values())


class _Taker:
    """Takes every notice, and counts them."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def tell(self, kind: str, detail: Mapping[str, Any]) -> None:
        del detail
        self.kinds.append(str(kind))

    def mail(self, subject: str, text: str, attributes: Mapping[str, str]) -> None:
        """People are not what this is about."""


def end_chain(chain: Dependents, scheduler: Scheduler, *, links: int) -> dict[str, Any]:
    """Cancel the root, and run passes until the whole chain has ended."""
    taker = _Taker()
    scheduler = replace(scheduler, notifier=cast("Notifier", taker), mailer=cast("Mailer", taker))
    chain.cancel_root()
    began, passes = time.process_time(), 0
    while chain.ended(links) < links:
        assert passes < MOST_PASSES, f"{chain.ended(links)} of {links} ended"
        summary = scheduler.run(POOL, deadline=_in_seconds(CHAIN_PASS_S))
        assert not summary.failures, summary.failures
        passes += 1
    return {
        "links": links,
        "passes": passes,
        "cpu_ms_a_link": round((time.process_time() - began) * 1000 / links, 3),
        "notices": taker.kinds.count("Dependents Ended"),
    }


def _in_seconds(seconds: float) -> Deadline:
    return Deadline.at(datetime.now(UTC) + timedelta(seconds=seconds), partial(datetime.now, UTC))
