"""The dashboard's files and data as a browser gets them from the gateway."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from unittest.mock import patch

import pytest
from trainmaster.core.jobs.model import FINAL, LIVE, JobState
from trainmaster_client.dashboard.dashboard_routes import AwsClients
from trainmaster_client.errors import ExpiredCredentialsError, LogsUnreadableError
from trainmaster_client.gateway.gateway_files import new_ui_url
from trainmaster_client.views.queue_model import QueueAnswers, queue_model

from tests.integration.client.fake_api import REGION, Scripted, problem, view
from tests.integration.client.gateway_world import TOKEN, GatewayWorld, running_gateway
from tests.integration.client.test_gateway_pages import asked, opened

BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def world() -> Iterator[GatewayWorld]:
    with running_gateway() as found:
        yield found


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", "text/html; charset=utf-8"),
        ("index.html", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("pages/now.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
    ],
)
def test_a_file_is_for_any_browser_of_this_machine_under_a_policy_that_runs_nothing_of_others(
    path: str, kind: str, world: GatewayWorld
) -> None:
    page = asked(world, f"/ui/{path}")
    assert (page.status, page.headers["content-type"]) == (200, kind)
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert (page.headers["x-content-type-options"], page.headers["referrer-policy"]) == (
        "nosniff",
        "no-referrer",
    )
    again = asked(world, f"/ui/{path}", if_none_match=page.headers["etag"])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path", ["x", "app.py", "../api/jobs", "..%2f__init__.py", "pages", "pages/", "%00", "web_files.py"]
)
def test_what_is_not_one_of_its_files_is_not_there(path: str, world: GatewayWorld) -> None:
    answer = asked(world, f"/ui/{path}", **BEARER)
    assert answer.status == 404
    assert json.loads(answer.body)["status"] == 404


def test_no_file_of_the_shell_holds_a_secret(world: GatewayWorld) -> None:
    secrets = {TOKEN, new_ui_url(world.url) or "", world.api.url}
    for path in ("", "app.js", "api.js"):
        body = asked(world, f"/ui/{path}").body.decode()
        assert not [one for one in secrets if one in body]


def test_a_file_that_a_page_of_another_port_asks_for_is_refused(world: GatewayWorld) -> None:
    others = {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}
    assert asked(world, "/ui/app.js", **others).status == 403


def test_the_session_says_where_the_pages_are_and_no_key(world: GatewayWorld) -> None:
    page = asked(world, "/ui/data/session", trainmaster_session=opened(world).session)
    said = json.loads(page.body)
    assert said == {
        "changes": False,
        "region": REGION,
        "api_url": world.api.url,
        "version": said["version"],
        "states": said["states"],
    }
    assert page.headers["cache-control"] == "no-store"


def test_the_session_knows_every_state_with_a_sign_and_a_phase(world: GatewayWorld) -> None:
    states = json.loads(asked(world, "/ui/data/session", **BEARER).body)["states"]
    phases = {state: told["phase"] for state, told in states.items()}
    live = {state.value: "live" for state in LIVE}
    final = {state.value: "final" for state in FINAL}
    assert phases == {**{state.value: "waiting" for state in JobState}, **live, **final}
    assert len({told["sign"] for told in states.values()}) == len(JobState), "no two look the same in grey"


def test_the_gateways_own_page_reads_what_it_did_so_far(world: GatewayWorld) -> None:
    said = json.loads(asked(world, "/ui/data/gateway", **BEARER).body)
    assert (said["api_url"], said["changes"]) == (world.api.url, False)
    assert said["credentials"].startswith("access key ...")
    assert TOKEN not in json.dumps(said)


class Streams:
    """CloudWatch Logs with one line of one training job."""

    def describe_log_streams(self, **request: str) -> dict[str, object]:
        return {"logStreams": [{"logStreamName": f"{request['logStreamNamePrefix']}algo-1-1790000000"}]}

    def get_log_events(self, **request: object) -> dict[str, object]:
        line = {"timestamp": 1_790_000_000_000, "message": "metric step=1 loss=2.5"}
        events = [] if request.get("nextToken") == "end" else [line]
        return {"events": events, "nextForwardToken": "end"}


JOB = {
    "name": "job1",
    "state": "running",
    "instances": {"ml.m5.xlarge": 1},
    "attempts": [{"attempt": 0, "training_job_name": "job1"}],
}


def test_logs_and_curves_of_a_job_are_read_here_with_the_gateways_credentials(world: GatewayWorld) -> None:
    world.api.forget()
    world.api.script("GET", "/jobs/job1", Scripted(document=JOB))
    with patch.object(AwsClients, "of", return_value=Streams()):
        logs = json.loads(asked(world, "/ui/data/jobs/job1/logs", **BEARER).body)
        curves = json.loads(asked(world, "/ui/data/jobs/job1/curves", **BEARER).body)
    assert [line["text"] for line in logs["lines"]] == ["metric step=1 loss=2.5"]
    assert curves["curves"][0]["points"] == [{"step": 1.0, "loss": 2.5, "at": 1_790_000_000.0}]
    assert {tuple(one.query["estimate"]) for one in world.api.received} == {("false",)}


NOW = "2026-11-21T03:00:00Z"
SWEEP = {"name": "sweep", "pool": "p5", "state": "pending", "tasks": {"total": 3, "waiting": 3}}
QUEUE = [
    view("run", state="running", position=None, training_since="2026-11-21T02:20:00Z"),
    view("wait", position=1),
    view(None, position=2, waiting=None),
]


def scripted_queue(world: GatewayWorld, **more: object) -> None:
    world.api.forget()
    world.api.script("GET", "/jobs", Scripted(document={"jobs": QUEUE, "next_token": None, **more}))
    world.api.script("GET", "/pools", Scripted(document={"pools": [{"name": "p5", "waiting": 2}]}))
    world.api.script("GET", "/estimates", Scripted(document={"estimates": []}))


def test_the_pages_get_the_rows_of_every_view_with_ages_of_their_own_clock(
    world: GatewayWorld,
) -> None:
    scripted_queue(
        world,
        arrays=[SWEEP],
    )
    queue = json.loads(asked(world, f"/ui/data/queue?now={NOW}&team=vision", **BEARER).body)
    now = datetime.fromisoformat(NOW)
    answers = QueueAnswers(
        document={
            "jobs": QUEUE,
            "arrays": [
                {"name": "sweep", "pool": "p5", "state": "pending", "tasks": {"total": 3, "waiting": 3}}
            ],
        },
        pools=[{"name": "p5", "waiting": 2}],
    )
    assert [row["cells"] for row in queue["rows"]] == [
        dict(row.cells) for row in queue_model(answers, now=now).rows
    ]
    assert [row["name"] for row in queue["rows"]] == ["run", "wait", "", "sweep"]
    assert [row["is_job"] for row in queue["rows"]] == [True, True, True, False]
    assert queue["rows"][0]["cells"]["ran"] == "40m"
    assert len({row["key"] for row in queue["rows"]}) == 4
    assert [(pool["name"], pool["waiting"]) for pool in queue["pools"]] == [("p5", "2 waiting")]
    assert (queue["has_starts"], queue["is_partial"]) == (True, False)
    assert world.api.received[0].query == {"team": ["vision"], "limit": ["1000"]}


def test_the_first_part_of_a_long_queue_is_a_page_and_costs_no_estimate(world: GatewayWorld) -> None:
    scripted_queue(world, next_token="t")
    first = json.loads(asked(world, "/ui/data/queue?part=first", **BEARER).body)
    assert first["is_partial"]
    assert set(world.api.calls()) == {"GET /jobs", "GET /pools"}
    assert world.api.received[0].query == {"limit": ["100"]}


def test_a_refusal_of_the_api_keeps_its_status_and_when_to_try_again(world: GatewayWorld) -> None:
    world.api.forget()
    refusal = problem(429, "Too many requests", "slow down")
    world.api.script("GET", "/jobs", replace(refusal, headers={**refusal.headers, "retry-after": "7"}))
    answer = asked(world, "/ui/data/queue", **BEARER)
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")


def test_a_job_comes_with_its_row_and_with_what_each_change_would_do(world: GatewayWorld) -> None:
    world.api.forget()
    document = view("wait", position=1)
    world.api.script("GET", "/jobs/wait", Scripted(document=document))
    told = json.loads(asked(world, f"/ui/data/jobs/wait?now={NOW}", **BEARER).body)
    assert told["job"] == document
    assert told["row"]["cells"]["age"] == "2h00m"
    assert told["questions"]["cancel"]["consequence"] == "It leaves the queue at once and is not requeued."
    assert [change for change, asked_ in told["questions"].items() if asked_["is_vain"]] == ["release"]
    assert told["wait"]["users"] == []
    assert told["wait"]["trouble"], "without the other jobs of its pool it is shown, and says so"


def test_a_waiting_job_comes_with_who_holds_what_it_needs_and_what_would_help(world: GatewayWorld) -> None:
    waits = view("wait", position=2)
    running = view("run", state="running", position=None, ends_by="2026-11-21T05:00:00Z")
    sooner = view(None, state="running", team="other", position=None, ends_by="2026-11-21T04:00:00Z")
    world.api.forget()
    world.api.script("GET", "/jobs/wait", Scripted(document=waits))
    jobs = [running, sooner, view("first", position=1), waits]
    world.api.script("GET", "/jobs", Scripted(document={"jobs": jobs, "next_token": None}))
    free = {"name": "p5", "free": {"on-demand": {"ml.p5.48xlarge": 0}}}
    world.api.script("GET", "/pools", Scripted(document={"pools": [free]}))
    told = json.loads(asked(world, f"/ui/data/jobs/wait?now={NOW}", **BEARER).body)
    wait = told["wait"]
    assert [(user["shown"], user["team"], user["ends_by"]) for user in wait["users"]] == [
        ("(other team's)", "other", "2026-11-21T04:00:00+00:00"),
        ("run", "default", "2026-11-21T05:00:00+00:00"),
    ]
    assert [other["name"] for other in wait["ahead"]] == ["first"]
    assert wait["help"].startswith("ask for fewer or other instances")
    assert told["row"]["cells"]["short"] == "waits for 1 of 1"
    assert {query["pool"][0] for query in (one.query for one in world.api.received) if "pool" in query} == {
        "p5"
    }


def test_a_job_that_runs_needs_no_other_job_to_be_explained(world: GatewayWorld) -> None:
    world.api.forget()
    world.api.script("GET", "/jobs/run", Scripted(document=view("run", state="running", position=None)))
    told = json.loads(asked(world, f"/ui/data/jobs/run?now={NOW}", **BEARER).body)
    assert (told["wait"]["users"], told["wait"]["ahead"], told["wait"]["help"]) == ([], [], "")
    assert world.api.calls() == ["GET /jobs/run"]


def test_a_clock_that_is_none_is_refused(world: GatewayWorld) -> None:
    scripted_queue(world)
    assert asked(world, "/ui/data/queue?now=yesterday", **BEARER).status == 400


@pytest.mark.parametrize("what", ["logs", "curves", "gpu"])
def test_a_job_that_the_api_does_not_show_has_no_log_here_either(what: str, world: GatewayWorld) -> None:
    world.api.forget()
    world.api.script("GET", "/jobs/theirs", problem(404, "Not found", "there is no job theirs"))
    answer = asked(world, f"/ui/data/jobs/theirs/{what}", **BEARER)
    assert (answer.status, "there is no job theirs" in json.loads(answer.body)["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("trouble", "status"),
    [(LogsUnreadableError("no right to read them."), 403), (ExpiredCredentialsError("expired."), 401)],
)
def test_what_goes_wrong_with_a_log_is_a_problem_document(
    trouble: Exception, status: int, world: GatewayWorld
) -> None:
    world.api.forget()
    world.api.script("GET", "/jobs/job2", Scripted(document={**JOB, "name": "job2"}))
    with patch.object(AwsClients, "of", side_effect=trouble):
        answer = asked(world, "/ui/data/jobs/job2/logs", **BEARER)
    assert (answer.status, json.loads(answer.body)["status"]) == (status, status)


def test_a_path_that_is_not_a_job_name_is_refused_before_the_api_is_asked(world: GatewayWorld) -> None:
    world.api.forget()
    assert asked(world, "/ui/data/jobs/a%20b/logs", **BEARER).status == 400
    assert world.api.received == []
