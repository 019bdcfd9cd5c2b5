"""GET /estimates: all jobs that wait, at once, within the CPU of one answer."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from trainmaster.api import build_api

from tests.integration.api.conftest import ADMIN, BOB, ON_G5, Api


def estimates(api: Api, **query: Any) -> list[dict[str, Any]]:
    answer = api.get("/estimates", **query)
    assert answer.status == 200, answer
    found: list[dict[str, Any]] = answer.json["estimates"]
    return found


def queue(api: Api, *, waiting: int = 2) -> None:
    """Both instances of p5 in use, and so many jobs that wait for one."""
    for name in ("runs-1", "runs-2"):
        api.submit(name)
        api.start(name)
    for number in range(waiting):
        api.submit(f"waits-{number}")


def test_jobs_that_wait_have_their_position_and_a_band(api: Api) -> None:
    queue(api)
    found = estimates(api)
    assert [(one["name"], one["pool"], one["position"]) for one in found] == [
        ("waits-0", "p5", 1),
        ("waits-1", "p5", 2),
    ]
    assert all("2026-11-02T12:00" < one["p50"] < one["p90"] for one in found)
    assert not api.get("/estimates").json["truncated"]


def test_a_pool_can_be_asked_for_alone_and_one_that_there_is_not_is_an_error(api: Api) -> None:
    queue(api)
    api.submit("small", ResourceConfig=ON_G5)
    assert [one["name"] for one in estimates(api, pool="g5")] == ["small"]
    assert len(estimates(api)) == 3
    assert api.get("/estimates", pool="g6").fields == ["query.pool"]


def test_jobs_of_other_teams_have_no_names(api: Api) -> None:
    queue(api)
    assert [one["name"] for one in estimates(api, user=BOB)] == [None, None]
    assert [one["name"] for one in estimates(api, user=ADMIN)] == ["waits-0", "waits-1"]


def test_paused_nothing_is_estimated_and_nothing_is_left_out(api: Api) -> None:
    queue(api)
    api.call("PUT", "/policy/paused", {"paused": True}, user=ADMIN)
    answer = api.get("/estimates").json
    assert [(one["p50"], one["p90"]) for one in answer["estimates"]] == [(None, None)] * 2
    assert not answer["truncated"]


def test_it_stops_where_its_cpu_is_spent(api: Api) -> None:
    queue(api, waiting=30)
    spent: Iterator[int] = count()
    api.handle = build_api(api.outside(cpu_seconds=lambda: next(spent) * 0.01))
    answer = api.get("/estimates").json
    assert answer["truncated"]
    assert len(answer["estimates"]) == 30
    assert answer["estimates"][-1]["p50"] is None
    assert next(spent) * 0.01 < 0.8


def test_an_empty_queue_has_no_estimates(api: Api) -> None:
    assert api.get("/estimates").json == {"estimates": [], "truncated": False}
