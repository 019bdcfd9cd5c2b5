"""GET /jobs and GET /pools."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.api import build_api
from trainmaster.core.jobs.model import JobState

from tests.integration.api.conftest import ADA, ADMIN, BOB, BOTH, DOCUMENT, G5, P5, STRANGER, Api

ON_G5 = {"InstanceType": G5, "InstanceCount": 1, "VolumeSizeInGB": 1}


@pytest.fixture(scope="module")
def busy(cloud: Any) -> Api:
    """For tests that change nothing."""
    return filled(Api(cloud, DOCUMENT))


def filled(api: Api) -> Api:
    """Two run and two wait in p5 (one backs off), one runs and one waits in g5, two have ended."""
    for name, priority in (("run-low", 1), ("run-high", 2), ("back-off", 9), ("wait-2", 0), ("wait-1", 3)):
        api.submit(name, priority=priority)
    api.submit("g5-run", user=BOB, ResourceConfig=ON_G5)
    api.submit("g5-wait", user=BOB, ResourceConfig=ON_G5)
    api.submit("done-old")
    api.submit("done-new")
    for name in ("run-low", "run-high", "g5-run"):
        api.start(name)
    api.put_back("back-off")
    api.end("done-old")
    api.now += timedelta(hours=1)
    api.end("done-new")
    return api


ALL = ["run-high", "run-low", "wait-1", "wait-2", "back-off", "g5-run", "g5-wait"]


def pages(api: Api, limit: int, *, user: str = ADMIN, **query: Any) -> list[list[str | None]]:
    found: list[list[str | None]] = []
    token: str | None = None
    while token is not None or not found:
        more = {"next_token": token} if token else {}
        answer = api.get("/jobs", user=user, limit=str(limit), **query, **more)
        assert answer.status == 200, answer
        found.append([view["name"] for view in answer.json["jobs"]])
        token = answer.json["next_token"]
    return found


def test_G8_an_empty_queue_is_an_empty_list(api: Api) -> None:
    assert api.get("/jobs").json == {"jobs": [], "arrays": [], "next_token": None}


def test_pools_in_policy_order_running_then_waiting_in_turn_then_parked(busy: Api) -> None:
    assert busy.names(user=ADMIN) == ALL


def test_waiting_jobs_have_positions_in_their_pool(busy: Api) -> None:
    views = busy.get("/jobs", user=ADMIN).json["jobs"]
    assert {view["name"]: view["position"] for view in views} == {
        "run-high": None,
        "run-low": None,
        "wait-1": 1,
        "wait-2": 2,
        "back-off": None,
        "g5-run": None,
        "g5-wait": 1,
    }


def test_other_teams_jobs_have_no_names(busy: Api) -> None:
    assert busy.names(user=BOB) == [None, None, None, None, None, "g5-run", "g5-wait"]
    masked = busy.get("/jobs", user=BOB).json["jobs"][2]
    assert masked == {
        "name": None,
        "team": "vision",
        "pool": "p5",
        "state": "pending",
        "priority": 3,
        "instances": {P5: 1},
        "position": 1,
        "started_at": None,
        "training_since": None,
        "ends_by": None,
    }


def test_a_caller_of_both_teams_sees_both(busy: Api) -> None:
    assert busy.names(user=BOTH) == ALL


def test_G2_a_stranger_sees_nothing(busy: Api) -> None:
    assert busy.get("/jobs", user=STRANGER).status == 403


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param({"pool": "g5"}, ["g5-run", "g5-wait"], id="one pool"),
        pytest.param({"team": "speech"}, ["g5-run", "g5-wait"], id="one team"),
        pytest.param({"state": "running"}, ["run-high", "run-low", "g5-run"], id="running"),
        pytest.param({"state": "pending"}, ["wait-1", "wait-2", "back-off", "g5-wait"], id="pending"),
        pytest.param({"state": "held"}, [], id="held"),
        pytest.param({"state": "completed"}, ["done-new", "done-old"], id="finished, the newest first"),
        pytest.param({"state": "completed", "team": "speech"}, [], id="finished of one team"),
        pytest.param({"state": "completed", "pool": "g5"}, [], id="finished of one pool"),
        pytest.param({"state": "failed"}, [], id="finished otherwise"),
        pytest.param({"state": "running", "team": "vision", "pool": "p5"}, ["run-high", "run-low"], id="all"),
        pytest.param({"state": "", "team": ""}, ALL, id="an empty value is none"),
    ],
)
def test_filters(busy: Api, query: dict[str, str], expected: list[str]) -> None:
    assert busy.names(user=ADMIN, **query) == expected


def test_positions_do_not_depend_on_filters(api: Api) -> None:
    filled(api)
    api.submit("late", user=BOB)
    (view,) = api.get("/jobs", user=BOB, team="speech", pool="p5").json["jobs"]
    assert (view["name"], view["position"]) == ("late", 3)


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 100])
def test_G8_pages_are_complete_and_in_order(busy: Api, limit: int) -> None:
    found = pages(busy, limit)
    assert [name for page in found for name in page] == ALL
    assert all(len(page) == limit for page in found[:-1])
    assert found[-1]


def test_G8_positions_go_on_from_page_to_page(busy: Api) -> None:
    first = busy.get("/jobs", user=ADMIN, state="pending", limit="1").json
    second = busy.get("/jobs", user=ADMIN, state="pending", limit="1", next_token=first["next_token"]).json
    assert [first["jobs"][0]["position"], second["jobs"][0]["position"]] == [1, 2]


def test_G8_jobs_of_one_instant_are_paged_by_name(api: Api) -> None:
    names = [f"j{number}" for number in range(5)]
    for name in reversed(names):
        api.submit(name)
    assert [name for page in pages(api, 2) for name in page] == names
    for name in names:
        api.end(name)
    assert [name for page in pages(api, 2, state="completed") for name in page] == names


def test_G8_what_moves_between_pages_does_not_disturb_the_rest(api: Api) -> None:
    filled(api)
    first = api.get("/jobs", user=ADMIN, limit="3").json
    assert [view["name"] for view in first["jobs"]] == ["run-high", "run-low", "wait-1"]
    api.end("run-high")
    api.start("wait-1")
    api.submit("new-first", priority=100)
    rest = api.names(user=ADMIN, next_token=first["next_token"])
    assert rest == ["wait-2", "back-off", "g5-run", "g5-wait"]


def test_G8_a_filter_that_matches_little_gives_short_pages_but_all_of_them(
    busy: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster.api.job_list._MAX_READ", 2)
    found = pages(busy, 5, team="speech")
    assert [name for page in found for name in page] == ["g5-run", "g5-wait"]
    assert [] in found


@pytest.mark.parametrize("query", [{}, {"state": "pending"}])
def test_a_job_that_moved_on_while_the_list_was_made_is_shown_as_it_is_now_or_not_at_all(
    api: Api, query: dict[str, str]
) -> None:
    class Slow:
        """Between reading the queue and the jobs, one ends and one starts."""

        def __getattr__(self, name: str) -> Any:
            return getattr(api.reader, name)

        def jobs(self, names: Any) -> Any:
            wanted = list(names)
            api.end("ends")
            api.start("starts")
            return api.reader.jobs(wanted)

    api.submit("ends")
    api.submit("starts")
    api.handle = build_api(api.outside(reader=Slow()))
    views = api.get("/jobs", **query).json["jobs"]
    expected = [] if query else [("starts", "running", None)]
    assert [(view["name"], view["state"], view["position"]) for view in views] == expected


def test_more_entries_than_are_read_at_a_time(busy: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster.api.job_list._READ_AHEAD", 1)
    assert busy.names(user=ADMIN) == ALL


def test_G7_a_token_is_good_for_those_who_see_the_same(busy: Api) -> None:
    token = busy.get("/jobs", user=ADA, limit="1").json["next_token"]
    colleague = ADA.replace("/ada", "/eva")
    assert busy.get("/jobs", user=colleague, next_token=token).status == 200
    for other in (BOB, BOTH, ADMIN):
        answer = busy.get("/jobs", user=other, next_token=token)
        assert (answer.status, answer.fields) == (400, ["query.next_token"])


@pytest.mark.parametrize("query", [{"state": "running"}, {"team": "vision"}, {"pool": "p5"}])
def test_G7_a_token_is_good_for_the_same_filters(busy: Api, query: dict[str, str]) -> None:
    token = busy.get("/jobs", limit="1").json["next_token"]
    assert busy.get("/jobs", next_token=token, **query).fields == ["query.next_token"]


def test_a_token_outlives_a_new_policy(api: Api) -> None:
    filled(api)
    token = api.get("/jobs", limit="1").json["next_token"]
    current = api.policies.current()
    api.policies.put(current.document, pools=["p5", "g5"], replaces=current)
    assert api.get("/jobs", next_token=token).status == 200


def test_a_token_of_a_pool_that_is_gone_says_to_start_again(api: Api) -> None:
    filled(api)
    token = api.get("/jobs", limit="6").json["next_token"]
    current = api.policies.current()
    smaller = {**current.document, "pools": current.document["pools"][:1]}
    api.policies.put(smaller, pools=["p5"], replaces=current)
    assert api.get("/jobs", next_token=token).fields == ["query.next_token"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "query.limit"),
        ({"limit": "1001"}, "query.limit"),
        ({"limit": "-1"}, "query.limit"),
        ({"limit": "1.0"}, "query.limit"),
        ({"limit": "²"}, "query.limit"),
        ({"limit": "9" * 5000}, "query.limit"),
        ({"state": "Running"}, "query.state"),
        ({"state": ["running", "pending"]}, "query.state"),
        ({"next_token": "x"}, "query.next_token"),
        ({"next_token": "../../"}, "query.next_token"),
        ({"sort": "asc"}, "query.sort"),
        ({"<x>": "asc"}, 'query["<x>"]'),
    ],
)
def test_bad_queries_name_the_parameter(api: Api, query: dict[str, Any], field: str) -> None:
    answer = api.get("/jobs", **query)
    assert (answer.status, answer.fields) == (400, [field])


def test_the_limit_is_50_by_default_and_100_at_most(api: Api) -> None:
    api.submit("a")
    assert api.names(limit="100") == ["a"]


def test_pools(busy: Api) -> None:
    p5, g5 = busy.get("/pools", user=BOB).json["pools"]
    assert (p5["name"], g5["name"]) == ("p5", "g5")
    assert p5["capacity"] == {P5: 2}
    assert p5["used"]["on-demand"] == {P5: 2}
    assert p5["free"] == {"on-demand": {P5: 0}, "spot": {}}
    assert (p5["waiting"], g5["waiting"]) == (3, 1)
    assert p5["oldest_waiting_since"] == "2026-11-02T12:00:00.000Z"
    assert [(team["name"], team["waiting"]) for team in g5["teams"]] == [("speech", 1)]


def test_an_idle_pool(api: Api) -> None:
    (p5, _) = api.get("/pools").json["pools"]
    assert (p5["free"]["on-demand"], p5["waiting"], p5["oldest_waiting_since"]) == ({P5: 2}, 0, None)


def test_a_job_that_backs_off_counts_as_waiting(api: Api) -> None:
    api.submit("a")
    api.put_back("a")
    (p5, _) = api.get("/pools").json["pools"]
    assert (p5["waiting"], p5["oldest_waiting_since"]) == (1, "2026-11-02T12:00:00.000Z")


def test_a_preempted_job_waits_in_its_turn(api: Api) -> None:
    api.submit("first")
    api.now += timedelta(minutes=1)
    api.submit("second")
    api.end("first", JobState.PREEMPTED)
    assert api.names() == ["first", "second"]
    assert api.names(state="preempted") == ["first"]
