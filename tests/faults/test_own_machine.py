"""The user's own machine: what a web page, or another user's process, gets of the twin and of the gateway.

Routes are those of the code's own tables, so that a new one is tried from its first day.
"""

import http.client
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from starlette.routing import Route
from trainmaster_client.files.private_files import write_private
from trainmaster_client.gateway.gateway_files import new_ui_url
from trainmaster_client.gateway.web_app import application

from local.control import PREFIX as CONTROL
from local.control import Control
from local.deployment.gateway.routes import Routes
from local.deployment.lambda_runtime.runtime_api import PREFIX as RUNTIME
from local.front_door import FrontDoor
from tests.integration.client.gateway_world import TOKEN, GatewayWorld, running_gateway
from tests.integration.local.running_twin import FIXTURE, RunningTwin, running_twin

FOREIGN: dict[str, dict[str, str]] = {
    "another origin": {"Origin": "https://evil.example"},
    "another port": {"Origin": "http://127.0.0.1:1"},
    "an origin that is none": {"Origin": "null"},
    "an empty origin": {"Origin": ""},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "the same site": {"Sec-Fetch-Site": "same-site"},
    "a link on another site": {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "iframe",
    },
    "a name bound to this machine": {"Host": "evil.example"},
    "such a name, same origin": {"Host": "evil.example:80", "Origin": "http://evil.example:80"},
    "all addresses": {"Host": "0.0.0.0"},
    "a name that begins like ours": {"Host": "localhost.evil.example"},
    "no name": {"Host": ""},
    "a proxy that nobody named": {"Host": "evil.example", "X-Forwarded-Host": "127.0.0.1"},
    "a proxy's word": {"X-Forwarded-Host": "evil.example"},
}
MEDIA_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "")


def sent(
    port: int, method: str, path: str, headers: dict[str, str], body: bytes | None = None
) -> tuple[int, bytes]:
    """One request, with exactly these headers and those that HTTP needs."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def filled(path: str) -> str:
    """A path of a table of routes, with a name for each of its variables."""
    return re.sub(r"\{[^}]*\}", "name", path)


# ---- the twin


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    twin: RunningTwin
    door: FrontDoor
    rest: tuple[tuple[str, str], ...]
    """Method and path of each route of the stack's API, below its stage."""

    @property
    def port(self) -> int:
        return urlsplit(self.twin.ready.endpoint_url).port or 0

    def routes(self) -> Iterator[tuple[str, str]]:
        """Method and path of all that the twin serves; the twin's own parts without their token."""
        for method, path in Control._routes(object.__new__(Control)):
            yield method, f"{CONTROL}{path}"
        yield "GET", f"{RUNTIME}/name/name/2018-06-01/runtime/invocation/next"
        yield "POST", f"{RUNTIME}/name/name/2018-06-01/runtime/invocation/name/response"
        yield "POST", f"{RUNTIME}/name/name/2018-06-01/runtime/init/error"
        stage = urlsplit(self.twin.ready.api_url).path
        yield from ((method, f"{stage}{path}") for method, path in self.rest)
        yield from ((method, "/") for method in ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"))
        yield from ((method, "/bucket/key") for method in ("GET", "PUT", "POST", "DELETE"))
        yield from (("POST", f"{prefix}/anything") for prefix in self.door.prefixes)
        yield "GET", "/no/such/place"

    def state(self) -> tuple[Any, ...]:
        """All that a request could have changed."""
        world = self.twin.control("GET", "/world").json
        logs = [self.twin.log_of(name) for name in ("probe", "recorder")]
        tables = self.twin.client("dynamodb").list_tables()["TableNames"]
        jobs = self.twin.control("GET", "/training-jobs").json
        return world, logs, tables, jobs, self.twin.advance(0)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    doors: list[FrontDoor] = []
    tables: list[Any] = []

    def door(**options: Any) -> FrontDoor:
        doors.append(FrontDoor(**options))
        return doors[0]

    def routes(table: Any) -> Routes:
        tables.append(table)
        return Routes(table)

    with (
        patch("local.foundation.FrontDoor", door),
        patch("local.deployment.assembly.Routes", routes),
        running_twin(tmp_path_factory.mktemp("twin"), template=FIXTURE, manual=True) as twin,
    ):
        rest = tuple((method.upper(), filled(path)) for method, path in tables[0])
        yield Seen(twin=twin, door=doors[0], rest=rest)


def test_the_routes_that_are_tried_are_all_there_is(seen: Seen) -> None:
    paths = {path for _, path in seen.routes()}
    assert len(seen.rest) >= 3
    assert len(paths) > 15
    for prefix in seen.door.prefixes:
        assert any(path.startswith(f"{prefix}/") for path in paths)
    assert {CONTROL, RUNTIME} < set(seen.door.prefixes)


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_T1_a_page_of_another_origin_is_refused_at_every_route_of_the_twin(
    headers: dict[str, str], seen: Seen
) -> None:
    before = seen.state()
    for method, path in seen.routes():
        assert sent(seen.port, method, path, headers, b"{}")[0] == 403, (method, path)
    assert seen.state() == before


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_T1_what_is_unsigned_and_has_no_token_is_refused_at_every_route_of_the_twin(
    media_type: str, seen: Seen
) -> None:
    """As a page sends to any server without asking it first, from a browser that says nothing of itself."""
    before = seen.state()
    headers = {"Content-Type": media_type} if media_type else {}
    body = json.dumps({"function": "recorder", "event": {"mark": "page"}}).encode()
    for method, path in seen.routes():
        assert sent(seen.port, method, path, headers, body)[0] == 403, (method, path)
    assert seen.state() == before


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_T1_not_even_the_token_and_a_signature_help_a_page(headers: dict[str, str], seen: Seen) -> None:
    before = seen.state()
    control, ready = urlsplit(seen.twin.ready.control_url).path, seen.twin.ready
    for method, path in Control._routes(object.__new__(Control)):
        assert sent(seen.port, method, f"{control}{path}", headers, b"{}")[0] == 403, path
    for service, path in (("execute-api", f"{urlsplit(ready.api_url).path}/do"), ("s3", "/bucket")):
        name = headers.get("Host", f"127.0.0.1:{seen.port}")
        request = AWSRequest("POST", f"http://{name or 'x'}{path}", data=b"{}")
        SigV4Auth(seen.twin.keys, service, ready.region).add_auth(request)
        assert sent(seen.port, "POST", path, {**dict(request.headers.items()), **headers}, b"{}")[0] == 403
    assert seen.state() == before


@pytest.mark.parametrize("token", ["", "x", "..", "%2e%2e", "a/b"])
def test_T2_control_calls_need_the_token_of_the_ready_file(token: str, seen: Seen) -> None:
    own = seen.twin.ready.control_url
    assert re.fullmatch(r"[\w-]{43}", own.rpartition("/")[2], re.ASCII)
    before = seen.state()
    for method, path in Control._routes(object.__new__(Control)):
        given = f"{CONTROL}/{token}{path}" if token else f"{CONTROL}{path}"
        status, body = sent(seen.port, method, given, {"Content-Type": "application/json"}, b"{}")
        assert (status, own.encode() in body) == (403, False), given
    near = urlsplit(own).path[:-1]
    assert sent(seen.port, "GET", f"{near}/world", {})[0] == 403
    assert sent(seen.port, "GET", f"{near}xx/world", {})[0] == 403
    assert sent(seen.port, "GET", f"//{CONTROL}/world", {})[0] == 403
    assert seen.state() == before
    assert seen.twin.control("GET", "/world").status == 200


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_T1_control_calls_take_json_alone(media_type: str, seen: Seen) -> None:
    before = seen.state()
    path = urlsplit(seen.twin.ready.control_url).path
    headers = {"Content-Type": media_type} if media_type else {}
    for method, route in Control._routes(object.__new__(Control)):
        if method == "POST":
            status, body = sent(seen.port, method, f"{path}{route}", headers, b'{"advance_seconds": 60}')
            assert (status, json.loads(body)["field"]) == (403, "content-type"), route
    assert seen.state() == before
    for json_type in ("application/json", "Application/JSON; charset=utf-8"):
        headers = {"Content-Type": json_type}
        assert sent(seen.port, "POST", f"{path}/clock", headers, b'{"advance_seconds": 0}')[0] == 200


@pytest.mark.parametrize("service", ["s3", "dynamodb", "sqs", "sts", "iam", "nonsense"])
def test_T2_a_key_that_the_twin_does_not_know_is_refused_whatever_is_sent(service: str, seen: Seen) -> None:
    scope = f"AKIAOTHER/20260101/us-east-1/{service}/aws4_request"
    signed = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=00"
    target = {"X-Amz-Target": "DynamoDB_20120810.ListTables"}
    for headers in ({}, target, {"Content-Type": "text/plain"}, {"Content-Encoding": "gzip", **target}):
        for body in (b"{}", b"not json", b"\x1f\x8b broken", b"[" * 100_000):
            status, _ = sent(seen.port, "POST", "/", {"Authorization": signed, **headers}, body)
            assert status == 403, (headers, body[:10])
    assert sent(seen.port, "GET", f"/bucket/key?X-Amz-Credential={scope}", {})[0] == 403


def test_T1_a_page_is_refused_before_its_body_is_read_and_is_in_the_journal(seen: Seen) -> None:
    headers = {"Origin": "https://evil.example", "Content-Length": "99999999999"}
    assert sent(seen.port, "POST", "/", headers)[0] == 403
    last = seen.twin.journal()[-1]
    assert (last["principal"], last["status"], last["error_code"]) == (None, 403, "AccessDeniedException")


def test_an_address_that_somebody_types_and_another_port_of_ssh_are_no_other_page(seen: Seen) -> None:
    path = f"{urlsplit(seen.twin.ready.control_url).path}/world"
    for headers in (
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"},
        {"Host": "localhost:9000"},
        {"Host": "LOCALHOST"},
        {"Host": "[::1]:9000"},
        {"Host": "localhost:9000", "Origin": "http://localhost:9000", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Mode": "cors"},  # of Node's fetch, which has no page
    ):
        assert sent(seen.port, "GET", path, headers)[0] == 200, headers


# ---- the gateway and the dashboard


@pytest.fixture(scope="module")
def gateway() -> Iterator[tuple[GatewayWorld, list[tuple[str, str]]]]:
    """With changes allowed, and method and path of each of its routes; tokens are right."""
    tables: list[Any] = []

    def routed(*arguments: Any, **options: Any) -> Any:
        app = application(*arguments, **options)
        tables.extend(app.routes)
        return app

    with (
        patch("trainmaster_client.gateway.gateway_server.application", routed),
        running_gateway(are_changes_allowed=True) as world,
    ):
        yield world, list(_calls(tables))


def _calls(table: list[Any]) -> Iterator[tuple[str, str]]:
    for route in table:
        assert isinstance(route, Route)
        path = route.path.replace("{path:path}", "/jobs" if route.path.startswith("/api") else "app.js")
        for method in sorted(route.methods or ()):
            yield method, filled(path.replace("{token}", TOKEN))
    yield "GET", "/"
    yield "GET", "/no/such/place"


def test_the_routes_of_the_gateway_that_are_tried_are_all_there_is(
    gateway: tuple[GatewayWorld, list[tuple[str, str]]],
) -> None:
    paths = {path for _, path in gateway[1]}
    assert {"/ui", "/ui/session", "/api/jobs", "/ui/data/session", f"/{TOKEN}/", f"/{TOKEN}/ui-url"} <= paths
    assert len(paths) > 12


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
def test_T1_a_page_of_another_origin_is_refused_at_every_route_of_the_gateway(
    headers: dict[str, str], gateway: tuple[GatewayWorld, list[tuple[str, str]]]
) -> None:
    world, calls = gateway
    secret = {"Authorization": f"Bearer {TOKEN}", "X-Amz-Target": "SageMaker.ListTrainingJobs"}
    for method, path in calls:
        status, body = sent(world.port, method, path, {**secret, **headers}, b"{}")
        assert status == 403, (method, path)
        assert b"#token=" not in body
    assert (world.api.received, world.sagemaker.calls) == ([], [])


@pytest.mark.parametrize("media_type", MEDIA_TYPES)
def test_T1_what_has_no_token_is_refused_at_every_route_of_the_gateway_that_tells_or_does_something(
    media_type: str, gateway: tuple[GatewayWorld, list[tuple[str, str]]]
) -> None:
    world, calls = gateway
    headers = {"Content-Type": media_type} if media_type else {}
    for method, path in calls:
        status, body = sent(world.port, method, path.replace(TOKEN, "guessed"), headers, b"{}")
        is_shell = path.startswith("/ui") and not path.startswith(("/ui/data", "/ui/session"))
        is_nothing = status in {404, 405}
        assert status == 403 or is_nothing or (is_shell and method == "GET"), (method, path)
        assert TOKEN.encode() not in body
    assert (world.api.received, world.sagemaker.calls) == ([], [])


# ---- files


@pytest.fixture
def _open_mask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_open_mask")
def test_T2_a_file_with_a_key_is_its_owners_alone_whatever_lies_in_its_place(tmp_path: Path) -> None:
    file, trap = tmp_path / "ready.json", tmp_path / "trap"
    trap.write_text("of somebody else")
    file.symlink_to(trap)
    write_private(file, "{}")
    assert (mode(file), file.is_symlink(), file.read_text()) == (0o600, False, "{}\n")
    assert trap.read_text() == "of somebody else"
    file.chmod(0o666)
    write_private(file, "{1}")
    assert (mode(file), file.read_text()) == (0o600, "{1}\n")
    with pytest.raises(OSError, match="No such file"):
        write_private(tmp_path / "none" / "ready.json", "{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ready.json", "trap"]


@pytest.mark.usefixtures("_open_mask")
def test_T2_a_file_that_cannot_be_put_in_place_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "ready.json").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_private(tmp_path / "ready.json", "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["ready.json"]


def test_T3_a_new_link_needs_the_token(gateway: tuple[GatewayWorld, list[tuple[str, str]]]) -> None:
    world, _ = gateway
    assert new_ui_url(world.url) is not None
    assert new_ui_url(f"http://127.0.0.1:{world.port}/guessed") is None
