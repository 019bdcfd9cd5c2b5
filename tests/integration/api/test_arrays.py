"""Arrays by HTTP: who sees them, what a dry run says, lists, pages, and what is refused."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.bodies import body
from tests.builders import NOON
from tests.integration.api.conftest import ADA, ADMIN, BOB, Answer, Api


def add_array(api: Api, name: str = "sweep", tasks: str = "0-9", *, user: str = ADA, **more: Any) -> Answer:
    query = more.pop("query", {})
    request = body(TrainingJobName=name, HyperParameters={"lr": "1"})
    return api.call(
        "POST", "/add-array", {"request": request, "tasks": tasks, **more}, user=user, query=query
    )


def test_other_teams_see_neither_array_nor_tasks(api: Api) -> None:
    assert add_array(api).status == 201

    for user, status in ((ADA, 200), (ADMIN, 200), (BOB, 404)):
        for path in ("/arrays/sweep", "/arrays/sweep/tasks", "/jobs/sweep-3"):
            assert api.get(path, user=user).status == status, (user, path)
    assert api.call("DELETE", "/arrays/sweep", user=BOB).status == 404
    assert api.call("PATCH", "/arrays/sweep", {"held": True}, user=BOB).status == 404
    assert api.call("POST", "/arrays/sweep/rerun", {"tasks": "1"}, user=BOB).status == 404
    assert [array["name"] for array in api.get("/arrays", user=ADA).json["arrays"]] == ["sweep"]
    assert api.get("/arrays", user=BOB).json["arrays"] == []
    assert api.get("/jobs", user=BOB).json["arrays"] == []


def test_a_dry_run_says_what_all_would_cost_and_stores_nothing(api: Api) -> None:
    answer = add_array(api, at_most=2, query={"dry_run": "true"}).json

    assert (answer["valid"], answer["tasks"], answer["at_most"]) == (True, 10, 2)
    assert answer["estimated_cost_usd"] == pytest.approx(10 * answer["usd_per_hour"], rel=0.01)
    assert answer["estimated_end"] > answer["estimated_start"]["p50"]
    assert api.get("/arrays").json["arrays"] == []
    assert add_array(api).status == 201
    taken = add_array(api, tasks="0-3", query={"dry_run": "true"}).json
    assert [violation["rule"] for violation in taken["violations"]] == ["name-taken"]
    job = api.call("POST", "/add-job", body(TrainingJobName="sweep-3"), user=ADA, query={"dry_run": "true"})
    assert [violation["rule"] for violation in job.json["violations"]] == ["name-taken"]


def test_the_same_array_again_is_the_same_array(api: Api) -> None:
    first, again = add_array(api), add_array(api)

    assert (first.status, again.status) == (201, 200)
    assert first.json["array"] == again.json["array"]
    assert add_array(api, at_most=3).status == 409
    assert add_array(api, values=[{"lr": str(number)} for number in range(10)]).status == 409


def test_lists_come_in_pages(api: Api) -> None:
    for number in range(3):
        add_array(api, f"sweep{number}", tasks="0-4")
    names, token = list[str](), None
    while token is not None or not names:
        query = {"limit": "2"} | ({"next_token": token} if token else {})
        page = api.get("/arrays", **query).json
        names += [array["name"] for array in page["arrays"]]
        token = page["next_token"]
    assert names == ["sweep0", "sweep1", "sweep2"]

    first = api.get("/arrays/sweep0/tasks", limit="3").json
    rest = api.get("/arrays/sweep0/tasks", **{"from": first["next_token"]}).json
    assert [task["index"] for task in (*first["tasks"], *rest["tasks"])] == [0, 1, 2, 3, 4]
    assert rest["next_token"] is None
    assert api.get("/arrays", state="nonsense").status == 400
    assert api.get("/arrays/sweep0/tasks", limit="0").status == 400


def test_a_cancelled_array_is_in_the_list_of_those_that_ended_once_a_pass_has_seen_it(api: Api) -> None:
    add_array(api)
    cancelled = api.call("DELETE", "/arrays/sweep", user=ADA)

    assert (cancelled.status, cancelled.json["state"]) == (202, "stopped")
    assert api.get("/arrays/sweep").json["stopped"] == "0-9"
    assert api.get("/jobs/sweep-3").json["reason"]["code"] == "stopped-by-user"
    assert api.call("PATCH", "/arrays/sweep", {"held": True}, user=ADA).status == 409


def test_lists_of_ones_own_leave_out_the_arrays_of_others(api: Api) -> None:
    eve = ADA.replace("vision-lead/ada", "vision-lead/eve")
    for name, user in (("adas", ADA), ("eves", eve), ("bobs", BOB)):
        assert add_array(api, name, user=user).status == 201

    for query, names in (
        ({"mine": "true"}, ["adas"]),
        ({"submitted_by": ADA}, ["adas"]),
        ({"mine": "true", "submitted_by": eve}, []),
        ({"mine": "false"}, ["adas", "eves"]),
    ):
        assert [array["name"] for array in api.get("/arrays", user=ADA, **query).json["arrays"]] == names
        listed = api.get("/jobs", user=ADA, **query).json["arrays"]
        assert [array["name"] for array in listed] == names, query
    named = api.get("/jobs", user=ADA, name_prefix="ev").json["arrays"]
    assert [array["name"] for array in named] == ["eves"]
    assert api.get("/arrays", mine="maybe").status == 400


@pytest.mark.parametrize("tasks", ["", "3%2", "1,", "5-1", "8", "٣"])
def test_a_cancel_of_tasks_that_are_none_cancels_none(api: Api, tasks: str) -> None:
    """``tasks=`` comes from scripts whose list is empty."""
    add_array(api, tasks="0-7")
    answer = api.call("DELETE", "/arrays/sweep", user=ADA, query={"tasks": tasks})
    assert (answer.status, answer.json["errors"][0]["field"]) == (400, "query.tasks")
    array = api.get("/arrays/sweep").json
    assert (array["stopped"], array["tasks"]["waiting"]) == ("", 8)


def test_a_throttle_in_the_tasks_of_a_rerun_is_refused_and_not_lost(api: Api) -> None:
    add_array(api, tasks="0-7")
    api.call("DELETE", "/arrays/sweep", user=ADA)
    rerun = api.call("POST", "/arrays/sweep/rerun", {"tasks": "3-5%1"}, user=ADA)
    assert (rerun.status, rerun.json["errors"][0]["field"]) == (400, "tasks")


@pytest.mark.parametrize(
    ("conditions", "hint"),
    [
        ("afterok:a:b", "one space between two"),
        ("afterok:a,afterok:b", "one space between two"),
        ("a,b", "one space between two"),
        ("sweep_3", "write task 3 of an array as sweep-3"),
        ("afterok:sweep_3", "write task 3 of an array as sweep-3"),
        ("after:a", "did you mean afterok?"),
        ("afterok:a?afterany:b", "one space between two"),
        ("afterwards:a", "use one of"),
    ],
)
def test_conditions_as_slurm_writes_them_are_refused_with_the_form_here(
    api: Api, conditions: str, hint: str
) -> None:
    answer = api.submit("child", tags={"trainmaster:after": conditions})
    assert answer.status == 400
    assert hint in answer.json["errors"][0]["hint"]


def start_of(api: Api, name: str, **fields: Any) -> float | None:
    """Hours from now until a job is likely to start; None where nobody can tell."""
    view = api.get(f"/jobs/{name}").json
    start = view["estimated_start"]
    return None if start is None else (datetime.fromisoformat(start["p50"]) - NOON) / timedelta(hours=1)


def submit_after(api: Api, name: str, condition: str) -> None:
    answer = api.submit(name, tags={"trainmaster:after": condition})
    assert answer.status == 201, answer.json


def test_the_start_of_a_job_after_an_array_is_estimated_behind_its_last_task(api: Api) -> None:
    """Four tasks of at most an hour, of which nothing else is known; two instances."""
    add_array(api, "two-at-once", tasks="0-3", at_most=2)
    add_array(api, "one-by-one", tasks="0-3", at_most=1)
    for stem in ("two-at-once", "one-by-one"):
        submit_after(api, f"after-{stem}", stem)
        submit_after(api, f"after-second-of-{stem}", f"{stem}-1")
    submit_after(api, "grandchild", "after-two-at-once")

    two, one = start_of(api, "after-two-at-once"), start_of(api, "after-one-by-one")
    assert two is not None
    assert one is not None
    assert one - two == pytest.approx(2, abs=0.5), "four rounds, not two"
    first_round = start_of(api, "after-second-of-two-at-once")
    assert first_round is not None
    assert two - first_round == pytest.approx(1, abs=0.5)
    assert (start_of(api, "grandchild") or 0) > two
    assert "likely ends" in api.get("/jobs/after-one-by-one").json["waiting"]["message"]


def test_nobody_can_tell_when_a_held_array_ends(api: Api) -> None:
    add_array(api)
    submit_after(api, "child", "sweep")
    assert api.call("PATCH", "/arrays/sweep", {"held": True}, user=ADA).status == 200
    view = api.get("/jobs/child").json
    assert view["estimated_start"] is None
    assert "jobs that it waits for" in view["estimate_note"]


@pytest.mark.parametrize(
    ("patch", "field"),
    [({}, "priority"), ({"at_most": 0}, "at_most"), ({"held": 1}, "held"), ({"after": "x"}, "after")],
)
def test_a_patch_that_means_nothing_is_refused(api: Api, patch: dict[str, Any], field: str) -> None:
    add_array(api)
    answer = api.call("PATCH", "/arrays/sweep", patch, user=ADA)

    assert (answer.status, answer.json["errors"][0]["field"]) == (400, field)


def test_a_priority_above_the_ceiling_of_the_team_is_refused(api: Api) -> None:
    add_array(api)

    assert api.call("PATCH", "/arrays/sweep", {"priority": 501}, user=ADA).status == 422
    assert api.call("PATCH", "/arrays/sweep", {"priority": 500}, user=ADA).json["priority"] == 500
    assert api.get("/jobs/sweep-1").json["priority"] == 500


def test_an_array_counts_as_one_that_waits(api: Api) -> None:
    add_array(api, tasks="0-99")

    (pool,) = (pool for pool in api.get("/pools").json["pools"] if pool["name"] == "p5")
    assert pool["waiting"] == 1


def test_indices_that_the_array_lacks_are_named(api: Api) -> None:
    add_array(api, tasks="0,2,4")
    answer = api.call("DELETE", "/arrays/sweep", user=ADA, query={"tasks": "1-4"})

    assert answer.status == 400
    assert "tasks 1,3" in answer.json["errors"][0]["message"]
    rerun = api.call("POST", "/arrays/sweep/rerun", {"tasks": "failed"}, user=ADA)
    assert rerun.status == 409
