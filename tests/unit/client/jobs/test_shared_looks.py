"""Many waits of a process on one queue: how often they ask, and how late each hears of its own job."""

import heapq
from collections.abc import Generator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from trainmaster_client.api import Document
from trainmaster_client.errors import ApiUnreachableError, InvalidRequestError, Problem
from trainmaster_client.http.calls import AnsweredDocument
from trainmaster_client.jobs.job_views import JobView, job_view
from trainmaster_client.jobs.look_intervals import look_interval
from trainmaster_client.jobs.progress import Watch, advance
from trainmaster_client.jobs.shared_looks import JobLooks, looks_at

AWAY = ApiUnreachableError("https://api/prod", why="connection refused.")
OLDER = InvalidRequestError(Problem(status=400, title="Invalid", detail="name_prefix is unknown"))


@dataclass
class Queue:
    """Jobs in their turn, with a clock that the test moves; each state it had is in a job's history."""

    api_url: str
    names: list[str]
    states: dict[str, str] = field(default_factory=dict)
    now: float = 0.0
    asked: list[str] = field(default_factory=list)
    filters: list[dict[str, Any]] = field(default_factory=list)
    unchanged: int = 0
    trouble: Exception | None = None
    caller: str = "AKIDONE"

    def caller_key(self) -> str:
        return self.caller

    def job(self, name: str, *, estimate: bool = True) -> Document:
        assert not estimate
        self.asked.append(name)
        if isinstance(self.trouble, ApiUnreachableError):
            raise self.trouble
        state = self.states.get(name, "pending")
        history = [{"at": "2026-11-01T00:00:00Z", "to": state}]
        return self._rows([name])[0] | {"history": history, "attempts": []}

    def jobs_unless(self, etag: str, **filters: Any) -> Document | None:
        self.asked.append("")
        self.filters.append(filters)
        if self.trouble is not None:
            raise self.trouble
        rows = self._rows([one for one in self.names if self.states.get(one) != "completed"])
        tag = str(rows)
        if etag == tag:
            self.unchanged += 1
            return None
        page = AnsweredDocument(jobs=rows, next_token=None)
        page.etag = tag
        return page

    def _rows(self, names: list[str]) -> list[Document]:
        waiting = [one for one in self.names if self.states.get(one, "pending") == "pending"]
        positions = {name: position for position, name in enumerate(waiting, start=1)}
        return [
            {
                "name": name,
                "team": "vision",
                "pool": "p5",
                "state": self.states.get(name, "pending"),
                "position": positions.get(name),
            }
            for name in names
        ]


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> Queue:
    return Queue(f"https://{request.node.name}/prod", [f"sweep-{number:03}" for number in range(830)])


@dataclass
class Waits:
    """Waits beside each other, in the order in which their pauses end."""

    queue: Queue
    seen: dict[str, float] = field(default_factory=dict)
    """When a wait for a job ended."""

    def run(self, names: list[str], *, until: float, changes: dict[float, dict[str, str]]) -> None:
        with ExitStack() as stack:
            due = [(0.0, number, self._steps(name, stack)) for number, name in enumerate(names)]
            while due and due[0][0] <= until:
                at, number, steps = heapq.heappop(due)
                for when in sorted(one for one in changes if one <= at):
                    self.queue.states |= changes.pop(when)
                self.queue.now = at
                step = advance(steps)
                if isinstance(step, JobView):
                    self.seen[str(step.name)] = at
                else:
                    heapq.heappush(due, (at + step, number, steps))

    def _steps(self, name: str, stack: ExitStack) -> Generator[float, None, JobView]:
        queue = self.queue
        looks = stack.enter_context(looks_at(queue, name, monotonic=lambda: queue.now))
        return Watch(
            look=lambda: job_view(looks.look()),
            say=lambda _: None,
            age=looks.age,
            monotonic=lambda: queue.now,
            chance=lambda: 0.0,
        ).steps()


def test_830_waits_of_one_process_read_one_list_and_not_83_jobs_a_second(queue: Queue) -> None:
    Waits(queue).run(queue.names, until=600, changes={})
    lists = queue.asked.count("")
    assert len(queue.asked) - lists == 830, "each job once, with its history"
    assert 60 <= lists <= 200, "seconds apart at first, then each 10 s, as the first in turn asks"
    assert queue.unchanged == lists - 1
    assert queue.filters[-1] == {
        "limit": 1000,
        "pool": "p5",
        "team": "vision",
        "name_prefix": "sweep-",
        "next_token": None,
    }


def test_no_wait_hears_of_its_job_later_than_its_own_interval(queue: Queue) -> None:
    ends = {f"sweep-{number:03}": 300.0 + number / 3 for number in range(0, 830, 7)}
    bounds = {name: look_interval(job_view(queue.job(name, estimate=False)), quiet=300) for name in ends}
    waits = Waits(queue)
    waits.run(queue.names, until=1000, changes={at: {name: "completed"} for name, at in ends.items()})
    late = {name: waits.seen[name] - at for name, at in ends.items()}
    assert all(0 <= late[name] <= bounds[name] for name in ends), late
    assert late["sweep-000"] <= 10, "the first in turn within seconds"


def test_a_wait_far_from_its_turn_does_not_hold_one_near_it(queue: Queue) -> None:
    waits = Waits(queue)
    waits.run(["sweep-829", "sweep-000"], until=400, changes={200.0: {"sweep-000": "completed"}})
    assert waits.seen["sweep-000"] - 200 <= 10


def test_a_lone_wait_asks_for_its_job_alone(queue: Queue) -> None:
    Waits(queue).run(["sweep-000"], until=100, changes={})
    assert set(queue.asked) == {"sweep-000"}


def test_who_has_left_is_not_waited_for(queue: Queue) -> None:
    with looks_at(queue, "sweep-000") as stays:
        with looks_at(queue, "sweep-001") as leaves:
            looked(stays, leaves)
        queue.asked.clear()
        stays.look()
    assert queue.asked == ["sweep-000"]


def test_callers_with_different_rights_share_nothing(queue: Queue) -> None:
    with looks_at(queue, "sweep-000") as one:
        one.look()
        queue.caller = "AKIDTWO"
        with looks_at(queue, "sweep-001") as other:
            looked(other, one)
    assert "" not in queue.asked


def test_a_job_that_the_list_does_not_have_is_asked_for_alone(queue: Queue) -> None:
    with looks_at(queue, "sweep-000") as one, looks_at(queue, "sweep-001") as other:
        looked(one, other)
        queue.states["sweep-001"] = "completed"
        assert other.look()["state"] == "completed"
        assert queue.asked[-1] == "sweep-001"


@pytest.mark.parametrize(
    ("news", "position", "last", "asked"),
    [
        pytest.param(("sweep-000", "completed"), 1, "pending", [""], id="a position is in the list"),
        pytest.param(
            ("sweep-001", "running"), None, "running", ["", "sweep-001"], id="a state has a history"
        ),
    ],
)
def test_news_in_the_list_is_read_alone_only_where_it_has_a_history(
    queue: Queue, news: tuple[str, str], position: int | None, last: str, asked: list[str]
) -> None:
    with looks_at(queue, "sweep-001") as one, looks_at(queue, "sweep-002") as other:
        looked(one, other)
        queue.states[news[0]] = news[1]
        queue.asked.clear()
        seen = one.look()
    assert seen.get("position") == position
    assert [line["to"] for line in seen["history"]] == [last]
    assert queue.asked == asked


def test_a_live_job_is_read_with_its_attempts_now_and_then(queue: Queue) -> None:
    queue.states |= {"sweep-001": "running"}
    with (
        looks_at(queue, "sweep-001", monotonic=lambda: queue.now) as live,
        looks_at(queue, "sweep-002", monotonic=lambda: queue.now) as waits,
    ):
        looked(live, waits)
        queue.asked.clear()
        for queue.now in (10.0, 299.0, 300.0):
            looked(live, waits)
    assert queue.asked == ["", "", "", "sweep-001"]


def test_a_network_that_is_away_is_found_out_once_for_all(queue: Queue) -> None:
    with looks_at(queue, "sweep-000") as one, looks_at(queue, "sweep-001") as other:
        looked(one, other)
        queue.trouble = AWAY
        queue.asked.clear()
        for wait in (one, other):
            with pytest.raises(ApiUnreachableError):
                wait.look()
        assert queue.asked == [""]
        queue.trouble = None
        assert one.look()["state"] == "pending"


def test_an_api_that_does_not_list_so_is_asked_job_by_job(queue: Queue) -> None:
    with looks_at(queue, "sweep-000") as one, looks_at(queue, "sweep-001") as other:
        looked(one, other)
        queue.trouble = OLDER
        for wait in (one, other, one):
            assert wait.look()["state"] == "pending"
        assert queue.asked.count("") == 1


def looked(*waits: JobLooks) -> None:
    for one in waits:
        one.look()
