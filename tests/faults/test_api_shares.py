"""K14: teams share the API's throttle, and none takes all of it while another one asks."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.errors import ShareExceededError
from trainmaster.core.submission.api_shares import Throttle
from trainmaster.services.read_counts import ReadCounts

from tests.builders import NOON
from tests.faults.test_limits import ADMIN, BLUE, RED, Plane, Untouchable, document, statuses
from tests.memory.edges import MemoryReadCounts

GATEWAY = Throttle(per_second=100, burst=200)
INSTANCES = 4
Rates = Mapping[str, float]
"""Calls a second, by team."""


@dataclass(slots=True)
class Stack:
    """Instances of the function in turn, on a clock that a test moves."""

    seconds: float = 0.0
    table: MemoryReadCounts = field(default_factory=MemoryReadCounts)
    instances: list[ReadCounts] = field(init=False)
    accepted: dict[str, Counter[int]] = field(default_factory=dict)
    """Calls let in, by team and second."""
    waits: list[int] = field(default_factory=list)
    """Retry-After of what was refused."""
    draw: random.Random = field(default_factory=lambda: random.Random(7))
    """Which instance a call comes to."""

    def __post_init__(self) -> None:
        self.instances = [self.instance() for _ in range(INSTANCES)]

    def instance(self) -> ReadCounts:
        return ReadCounts(self.table, throttle=GATEWAY, monotonic=lambda: self.seconds)

    def play(self, rates: Rates, *, until: float, step: float = 0.01) -> None:
        """Every team calls at its rate, evenly, whatever it is answered."""
        due = dict.fromkeys(rates, 0.0)
        while self.seconds < until - step / 2:
            for team, rate in rates.items():
                due[team] += rate * step
                while due[team] >= 1 - 1e-9:
                    due[team] -= 1
                    self._call(team)
            self.seconds = round(self.seconds + step, 6)

    def _call(self, team: str) -> None:
        instance = self.draw.choice(self.instances)
        now = NOON + timedelta(seconds=self.seconds)
        try:
            instance.weigh(team, user_arn=team, now=now)
        except ShareExceededError as error:
            self.waits.append(error.retry_after)
        else:
            self.accepted.setdefault(team, Counter())[int(self.seconds)] += 1

    def mean(self, team: str, since: int, until: int) -> float:
        """Calls of the team that are let in a second."""
        return sum(self.accepted[team][second] for second in range(since, until)) / (until - since)


def test_K14_a_team_that_storms_leaves_another_what_it_asks_for() -> None:
    stack = Stack()
    stack.play({"red": 300, "blue": 20}, until=60)
    assert stack.mean("blue", 0, 60) == pytest.approx(20, abs=0.1), "none of its calls is refused"
    assert stack.mean("red", 10, 60) == pytest.approx(100 / 3, rel=0.1)
    assert max(stack.waits) <= 10, "for the first storm, of which each instance knew a part; then 1 s"
    assert max(stack.waits[-1000:]) <= 2


def test_K14_two_teams_that_storm_leave_a_third_its_part() -> None:
    stack = Stack()
    stack.play({"red": 200, "blue": 200}, until=30)
    both = [stack.mean(team, 10, 30) for team in ("red", "blue")]
    assert both == pytest.approx([100 / 3, 100 / 3], rel=0.1)
    assert sum(both) < 75, "the two do not exhaust the throttle"
    stack.play({"red": 200, "blue": 200, "green": 20}, until=60)
    assert stack.mean("green", 30, 60) == pytest.approx(20, abs=0.5)
    assert [stack.mean(team, 40, 60) for team in ("red", "blue")] == pytest.approx([25, 25], rel=0.1)


def test_K14_a_team_that_came_first_and_took_much_does_not_keep_the_next_one_out() -> None:
    """Nor does it pay later for what nobody else wanted: from then on both have the same."""
    stack = Stack()
    stack.play({"red": 100}, until=30)
    assert stack.mean("red", 10, 30) == pytest.approx(50, rel=0.1), "alone it has half"
    stack.play({"red": 100, "blue": 100}, until=60)
    assert stack.mean("blue", 35, 60) == pytest.approx(100 / 3, rel=0.1)
    assert stack.mean("red", 35, 60) == pytest.approx(100 / 3, rel=0.1)


def test_K14_a_team_has_its_larger_share_again_once_the_others_are_silent() -> None:
    stack = Stack()
    stack.play({"red": 100, "blue": 100}, until=20)
    stack.play({"red": 100}, until=60)
    assert stack.mean("red", 40, 60) == pytest.approx(50, rel=0.1)


def test_K14_shares_cost_one_write_a_second_and_instance_at_most_and_seldom_callers_none() -> None:
    stack = Stack()
    stack.play({"red": 300, "blue": 1}, until=60)
    writes = Counter(team for team, _ in stack.table.writes)
    assert writes["red"] <= 60 * INSTANCES
    assert writes["blue"] <= 60 / 5, "it is reported occasionally, lest nobody knows that it asks"


def test_K14_a_table_that_takes_no_counts_leaves_each_instance_its_own() -> None:
    stack = Stack()
    stack.table.is_broken = True
    stack.play({"red": 300, "blue": 20}, until=20)
    assert stack.mean("blue", 0, 20) == pytest.approx(20, abs=0.1)
    assert stack.mean("red", 10, 20) <= INSTANCES * 100 / 3 * 1.1


# ---- through the API


@pytest.fixture
def plane() -> Plane:
    plane = Plane(document(max_submissions_per_minute=10_000, max_reads_per_minute=10_000))
    plane.handle = plane.instance(reads=_counts(plane))
    return plane


def _counts(plane: Plane, monotonic: Callable[[], float] = lambda: 7.0) -> ReadCounts:
    return ReadCounts(plane.counts, throttle=Throttle(per_second=4, burst=20), monotonic=monotonic)


def test_K14_reads_and_changes_are_weighed_together_and_refused_with_the_wait(plane: Plane) -> None:
    found = [plane.submit(f"job-{number}") for number in range(5)]
    found += [plane.call("GET", "/jobs") for _ in range(3)]
    found += [plane.call("PATCH", "/jobs/job-0", {"held": True}), plane.call("POST", "/add-job", {})]
    assert statuses(found) == {201: 5, 200: 4, 400: 1}, "half of a burst of 20"
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/jobs", None),
        ("GET", "/jobs/job-0", None),
        ("PATCH", "/jobs/job-0", {"held": False}),
        ("POST", "/add-job", {}),
    ]
    refused = [plane.call(*call) for call in calls]
    assert statuses(refused) == {429: 4}
    for answer in refused:
        assert answer.headers["retry-after"] == "1"
        assert answer.json["errors"][0]["rule"] == "api_share"
        assert "team red asks more often than its share of the API" in answer.json["detail"]
    assert plane.call("POST", "/add-job", {}, dry_run="true").status == 429


def test_K14_a_cancel_is_never_refused_for_the_share_and_others_are_served(plane: Plane) -> None:
    plane.submit("a")
    while plane.call("GET", "/jobs").status == 200:
        pass
    assert plane.call("DELETE", "/jobs/a").status == 202
    assert plane.call("GET", "/jobs", user=BLUE).status == 200
    assert plane.submit("b", user=BLUE).status == 201
    assert statuses(plane.call("GET", "/jobs", user=ADMIN) for _ in range(50)) == {200: 50}


def test_K14_who_is_over_its_share_is_refused_unread_until_the_next_call_is_due(plane: Plane) -> None:
    seconds = [7.0]
    reads = _counts(plane, lambda: seconds[0])
    plane.handle = plane.instance(reads=reads)
    while plane.call("GET", "/jobs", user=RED).status == 200:
        pass
    nothing: Any = Untouchable()
    plane.handle = plane.instance(reads=reads, policies=nothing, reader=nothing)
    assert plane.call("GET", "/jobs").status == 429
    assert plane.submit("b").status == 429
    plane.handle = plane.instance(reads=reads)
    seconds[0] += 0.5
    assert [plane.call("GET", "/jobs").status for _ in range(2)] == [200, 429]


def test_K14_without_a_throttle_nobody_is_weighed() -> None:
    plane = Plane(document(max_reads_per_minute=10_000))
    assert statuses(plane.call("GET", "/jobs") for _ in range(300)) == {200: 300}
