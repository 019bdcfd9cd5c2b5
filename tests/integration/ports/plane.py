"""One empty table with a policy, and short ways to what a test of the ports needs."""

import json
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from trainmaster.adapters.dynamodb import DynamoJobStore, DynamoReader
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring.metrics import Sample
from trainmaster.core.planning.queue_entries import waiting_entry
from trainmaster.core.planning.snapshot import PreemptionReservation, Snapshot, WarmPool
from trainmaster.core.policy import parse_policy
from trainmaster.core.records import StoredPolicy, WriteCondition
from trainmaster.ports import PolicyStore

from tests.builders import NOON, A, B, changed, claimed, job, minutes, of, seen
from tests.ends import observed
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore

WHY = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by ada")
HALF_AN_HOUR = timedelta(minutes=30)
DOCUMENT = {
    "pools": [{"name": "main", "capacity": {A: 4, B: 4}}],
    "teams": [{"name": "vision", "principals": [], "roles": "any", "budget": {"usd_per_month": 100}}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    """One empty table with a policy, and short ways to what a test needs."""

    store: DynamoJobStore | MemoryJobStore
    reader: DynamoReader | MemoryReader
    policies: PolicyStore
    policy: StoredPolicy
    counted: list[Sample]
    """What was written counts as, in order."""

    def submitted(self, name: str, **fields: Any) -> Job:
        one = job(name, **{"entry_id": f"01{name}"} | fields)
        self.store.submit(one, json.dumps({"TrainingJobName": name}).encode())
        return one

    def change(self, before: Job, after: Job, change: dict[str, Any] | None = None, **condition: Any) -> Job:
        limits = WriteCondition(**{"policy_version": self.policy.version} | condition) if condition else None
        one = Change(before=before, after=after, **change or {})
        (written,) = self.store.commit([one], at=NOON, condition=limits)
        return written

    def running(self, name: str, **fields: Any) -> Job:
        claim = {key: fields.pop(key) for key in ("month", "reserved_cents") if key in fields}
        one = self.submitted(name, **fields)
        started = self.change(one, claimed(one, **claim))
        return self.change(started, steps.recorded(started, training_job_arn="arn:x", now=NOON))

    def snapshot(self, *, at: timedelta = timedelta(), paused: bool = False) -> Snapshot:
        policy = parse_policy(self.policy.document)
        return self.reader.snapshot(policy.pools[0], policy=policy, paused=paused, now=NOON + at)

    def overview(self) -> Snapshot:
        policy = parse_policy(self.policy.document)
        return self.reader.overview(policy.pools[0], policy=policy, paused=False, now=NOON)

    def preempts(
        self,
        hold: PreemptionReservation,
        victim: Job,
        preemptor: Job,
        *,
        replaces: PreemptionReservation | None = None,
    ) -> Job:
        entry = waiting_entry(preemptor)
        after = steps.preempted_for(victim, entry)
        return self.change(victim, after, places_hold=hold, replaces_hold=replaces, still_waiting=entry)

    def counts(self) -> list[tuple[str, str]]:
        """(metric, dimension) of what was written since somebody last asked."""
        counted = [(one.metric.name, one.of if isinstance(one.of, str) else "") for one in self.counted]
        self.counted.clear()
        return counted

    def job(self, name: str) -> Job:
        found = self.reader.job(name)
        assert found is not None
        return found


def ended(one: Job, status: str = "Completed", *, trained: timedelta = HALF_AN_HOUR, **fields: Any) -> Change:
    """The news that its training job is over."""
    assert one.live is not None
    news: dict[str, Any] = {"training_since": NOON - trained, "ended_at": NOON, "secondary": status}
    name = one.live.training_job_name
    change = observed(one, seen(name, status=status, **news | fields), now=NOON)
    assert change is not None
    return change


def billed(one: Job, status: str, **fields: Any) -> Change:
    """Its end, with a bill."""
    over = ended(one, status)
    assert over.ended is not None
    return replace(over, ended=changed(over.ended, **fields))


def warm(name: str, **fields: Any) -> WarmPool:
    values: dict[str, Any] = {
        "vector": of(1),
        "warm_key": "k",
        "since": NOON,
        "expires_at": NOON + minutes(9),
    }
    return WarmPool(training_job_name=name, team="default", **values | fields)
