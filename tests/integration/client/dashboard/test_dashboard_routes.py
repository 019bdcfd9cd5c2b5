"""The dashboard's files and data as a browser gets them from the gateway."""

import json
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from trainmaster_client.dashboard.dashboard_routes import AwsClients
from trainmaster_client.errors import ExpiredCredentialsError, LogsUnreadableError
from trainmaster_client.gateway.gateway_files import new_ui_url

from tests.integration.client.fake_api import REGION, Scripted, problem
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
    }
    assert page.headers["cache-control"] == "no-store"


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
