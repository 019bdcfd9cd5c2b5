"""What is remembered adds up: pools over time are the sum of their timeline, waits that of their causes."""

import json
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from trainmaster.api import Outside, build_api
from trainmaster.core.history.journal import wait_counts
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.planning.snapshot import WarmPool
from trainmaster.services.read_counts import ReadCounts

from tests.builders import NOON, A, claimed, job, minutes, of, seen, waiting
from tests.ends import observed
from tests.memory.edges import MemoryReadCounts, MemoryRegister, MemoryRepairs, MemoryWakeUps
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.store import MemoryJobStore
from tests.memory.tables import Tables

ADMIN = "arn:aws:iam::111122223333:user/admin"
DOCUMENT = {"pools": [{"name": "main", "capacity": {A: 9}, "spot_capacity": {A: 9}}]}
WHY = Reason(code=ReasonCode.STOPPED_BY_USER, message="stopped by ada")
MOVES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 240)), max_size=40)
"""Of a job, what happens next (if it can), and how many seconds later."""
STEP = 60


class Story:
    """Jobs of one pool, each a step further when its turn comes."""

    def __init__(self) -> None:
        self.tables = Tables()
        self.store = MemoryJobStore(self.tables)
        self.policies = MemoryPolicyStore(self.tables)
        self.policies.put(DOCUMENT, pools=["main"], replaces=self.policies.current())
        self.now = NOON
        self.waited: list[tuple[datetime, int]] = []
        """By instant, how many more wait: submissions and requeues less claims and withdrawals."""

    def move(self, number: int, kind: int, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        one = self.tables.jobs.get(f"job-{number}")
        if one is None:
            spot = number % 3 == 0
            new = job(f"job-{number}", entry_id=f"E{number}", vector=of(1, spot=spot), submitted_at=self.now)
            self.store.submit(new, b"{}")
            self.waited.append((self.now, 1))
        elif one.is_waiting:
            self._from_queue(one, kind)
        elif one.is_live:
            self._live(one, kind)

    def _from_queue(self, one: Job, kind: int) -> None:
        if kind == 0:
            self._change(one, steps.cancelled(one, reason=WHY, now=self.now))
        else:
            name = f"{one.name}-r{one.attempt}"
            started = self._change(one, claimed(one, name, now=self.now))
            self._change(started, steps.recorded(started, training_job_arn="arn:x", now=self.now))
        self.waited.append((self.now, -1))

    def _live(self, one: Job, kind: int) -> None:
        if kind == 0:
            self._change(one, steps.preempted_for(one, waiting("x"))) if one.state == "running" else None
            return
        live = one.live_attempt
        status = "Completed" if kind == 1 and one.state == "running" else "Stopped"
        news = seen(
            live.training_job_name,
            status=status,
            secondary=status,
            training_since=live.claim.at,
            ended_at=self.now,
        )
        change = observed(one, news, now=self.now)
        assert change is not None
        (after,) = self.store.commit([change], at=self.now)
        if after.is_waiting:
            self.waited.append((self.now, 1))
        if kind == 2:
            self._warm(live.training_job_name)

    def _warm(self, name: str) -> None:
        """Kept for four minutes, by now or from now on."""
        warm = WarmPool(
            training_job_name=name,
            team="default",
            vector=of(1),
            warm_key="k",
            since=self.now,
            expires_at=self.now + minutes(4),
        )
        self.store.change_warm("main", None, warm, at=self.now)
        for old in list(self.tables.pools["main"].warm_pools.values())[:-1]:
            self.store.change_warm("main", old, None, at=self.now)

    def _change(self, before: Job, after: Job) -> Job:
        (written,) = self.store.commit([Change(before=before, after=after)], at=self.now)
        return written

    def get(self, path: str, **query: str) -> dict[str, Any]:
        handle = build_api(
            Outside(
                store=self.store,
                reader=MemoryReader(self.tables),
                policies=self.policies,
                wake_ups=MemoryWakeUps(),
                clock=lambda: self.now,
                register=MemoryRegister(),
                repairs=MemoryRepairs(),
                random_bytes=bytes,
                account_id="111122223333",
                admin_principal_arns=(ADMIN,),
                reads=ReadCounts(MemoryReadCounts()),
            )
        )
        answer = handle(
            {
                "path": path,
                "httpMethod": "GET",
                "headers": {},
                "multiValueQueryStringParameters": {name: [text] for name, text in query.items()},
                "requestContext": {"identity": {"userArn": ADMIN}},
            },
            None,
        )
        assert answer["statusCode"] == 200, answer
        body: dict[str, Any] = json.loads(answer["body"])
        return body


def instant(text: str | None, now: datetime) -> datetime:
    return now if text is None else datetime.fromisoformat(text)


def spent(body: dict[str, Any], now: datetime) -> dict[tuple[str, str], float]:
    """Instance-seconds of the timeline, by kind and capacity type."""
    found: dict[tuple[str, str], float] = {}
    for one in body["attempts"]:
        held = instant(one["ended_at"], now) - instant(one["claimed_at"], now)
        key = ("used", one["capacity_type"])
        found[key] = found.get(key, 0) + one["instances"][A] * held.total_seconds()
    for one in body["warm"]:
        kept = instant(one["until"], now) - instant(one["since"], now)
        found["warm", "on-demand"] = (
            found.get(("warm", "on-demand"), 0) + one["instances"] * kept.total_seconds()
        )
    return found


@settings(max_examples=40, deadline=None)
@given(moves=MOVES)
def test_pools_over_time_are_the_sum_of_their_timeline(moves: list[tuple[int, int, int]]) -> None:
    story = Story()
    for move in moves:
        story.move(*move)
    story.now += minutes(1)
    asked = {"from": NOON.isoformat(), "to": story.now.isoformat()}
    points = story.get("/pools/history", **asked, step=str(STEP))["points"]
    whole = (story.now - NOON).total_seconds()
    lengths = [min(STEP, whole - number * STEP) for number in range(len(points))]
    by_timeline = spent(story.get("/timeline", **asked), story.now)
    for kind, capacity in (("used", "on-demand"), ("used", "spot"), ("warm", "on-demand")):
        means = [point[capacity].get(A, {}).get(kind, 0) for point in points]
        total = sum(mean * length for mean, length in zip(means, lengths, strict=True))
        assert abs(total - by_timeline.get((kind, capacity), 0)) <= 0.0005 * whole + 0.001


@settings(max_examples=40, deadline=None)
@given(moves=MOVES)
def test_who_waits_is_who_came_less_who_left(moves: list[tuple[int, int, int]]) -> None:
    story = Story()
    for move in moves:
        story.move(*move)
    story.now += minutes(2)
    asked = {"from": NOON.isoformat(), "to": story.now.replace(second=0).isoformat()}
    points = story.get("/pools/history", **asked, step="60")["points"]
    for point in points:
        until = instant(point["at"], story.now) + minutes(1)
        expected = sum(count for at, count in story.waited if at < until)
        shown = sum(point[kind][A]["waiting"] for kind in ("on-demand", "spot"))
        assert shown == expected


@given(first=st.integers(0, 3), second=st.integers(0, 3))
def test_a_commit_that_changes_nothing_about_who_waits_counts_nothing(first: int, second: int) -> None:
    before, after = job("a", ver=first), job("a", ver=second)
    assert wait_counts([Change(before=before, after=after)]) == {}
