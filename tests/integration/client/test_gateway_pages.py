"""Who is let into the pages: a link that opens once, the session after it; and the API behind both."""

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
from botocore.credentials import Credentials
from trainmaster_client.gateway.gateway_files import new_ui_url, status

from tests.integration.client.fake_api import ACCESS_KEY, SECRET_KEY, Scripted, problem
from tests.integration.client.gateway_world import TOKEN, GatewayWorld, running_gateway

JOBS: dict[str, Any] = {"jobs": [], "next_token": None}


@pytest.fixture(scope="module")
def reading() -> Iterator[GatewayWorld]:
    with patch("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0), running_gateway() as world:
        yield world


@pytest.fixture(scope="module")
def changing() -> Iterator[GatewayWorld]:
    with running_gateway(are_changes_allowed=True) as world:
        yield world


@pytest.fixture(scope="module")
def proxied() -> Iterator[GatewayWorld]:
    with running_gateway(proxies=frozenset({"hub.example"})) as world:
        yield world


@pytest.fixture
def world(reading: GatewayWorld) -> GatewayWorld:
    reading.api.forget()
    return reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def session(self) -> str:
        """As the page sends it back in a header."""
        return str(json.loads(self.body)["session"])


def asked(world: GatewayWorld, target: str, method: str = "GET", body: Any = None, **headers: Any) -> Page:
    """As a browser asks, which is not botocore. Names of headers are written with underscores."""
    connection = HTTPConnection("127.0.0.1", world.port, timeout=10)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, target, body=body, headers=named)
    answer = connection.getresponse()
    found = {name.lower(): value for name, value in answer.getheaders()}
    page = Page(status=answer.status, headers=found, body=answer.read())
    connection.close()
    return page


def token_of(ui_url: str | None) -> str:
    """Behind the #: browsers keep it to themselves, and the page sends it in a header."""
    parts = urlsplit(ui_url or "")
    assert (parts.path, parts.query) == ("/ui/", "")
    return parts.fragment.removeprefix("token=")


def opened(world: GatewayWorld, prefix: str = "", **headers: str) -> Page:
    token = token_of(new_ui_url(world.url))
    return asked(world, f"{prefix}/ui/session", "POST", trainmaster_token=token, **headers)


def test_a_link_opens_the_pages_once_and_its_page_goes_on_by_the_session(world: GatewayWorld) -> None:
    token = token_of(world.ui_url)
    first = asked(world, "/ui/session", "POST", trainmaster_token=token)
    assert (first.status, first.headers["cache-control"]) == (200, "no-store")
    assert asked(world, "/ui/session", "POST", trainmaster_token=token).status == 403
    assert asked(world, "/ui/data/session", trainmaster_session=first.session).status == 200


def test_T3_the_browser_gets_nothing_that_it_would_send_to_another_port(world: GatewayWorld) -> None:
    first = opened(world)
    pages = [asked(world, "/ui/"), asked(world, "/ui/data/session", trainmaster_session=first.session)]
    for page in (first, *pages):
        assert "set-cookie" not in page.headers
    for name in (f"trainmaster-{world.port}", "trainmaster-session"):
        for target in ("/api/jobs", "/ui/data/session", f"/ui/data/session?session={first.session}"):
            assert asked(world, target, cookie=f"{name}={first.session}").status == 403
    assert world.api.received == []


@pytest.mark.parametrize("given", ["", "wrong", "\u00e9"])
def test_a_token_that_is_not_one_of_the_gateways_opens_nothing(given: str, world: GatewayWorld) -> None:
    answer = asked(world, "/ui/session", "POST", trainmaster_token=given)
    assert (answer.status, b'session"' in answer.body) == (403, False)
    assert answer.headers["trainmaster-refused-by"] == "gateway"


def test_a_token_is_not_spent_by_a_page_of_another_origin_nor_by_a_link(world: GatewayWorld) -> None:
    token = token_of(new_ui_url(world.url))
    others = {"origin": "https://evil.example", "sec_fetch_site": "cross-site"}
    assert asked(world, "/ui/session", "POST", trainmaster_token=token, **others).status == 403
    assert asked(world, "/ui/session", trainmaster_token=token).status == 405
    assert asked(world, "/ui/session", "POST", trainmaster_token=token).status == 200


@pytest.mark.parametrize(
    "target", ["/api/jobs", "/api/jobs?token=wrong", "/ui/data/session", "/ui/data/gateway"]
)
def test_without_token_and_session_nothing_is_shown_and_nothing_asked(
    target: str, world: GatewayWorld
) -> None:
    answer = asked(world, target, trainmaster_session="wrong")
    assert answer.status == 403
    assert b"arn:" not in answer.body
    assert "set-cookie" not in answer.headers
    assert world.api.received == []


def test_the_api_is_asked_signed_with_path_query_and_headers_but_without_the_session(
    world: GatewayWorld,
) -> None:
    session = opened(world).session
    world.api.script("GET", "/jobs", Scripted(document=JOBS, headers={"ETag": '"1"', "Set-Cookie": "a=b"}))
    answer = asked(
        world,
        "/api/jobs?team=a%2Bb&limit=5",
        trainmaster_session=session,
        if_none_match='"0"',
        accept="text/csv",
    )
    assert (answer.status, json.loads(answer.body), answer.headers["etag"]) == (200, JOBS, '"1"')
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-security-policy"].endswith("sandbox")
    received = world.api.received[0]
    assert received.query == {"team": ["a+b"], "limit": ["5"]}
    assert (received.headers["if-none-match"], received.headers["accept"]) == ('"0"', "text/csv")
    assert "trainmaster-session" not in received.headers


def test_a_refusal_of_the_api_is_passed_on(world: GatewayWorld) -> None:
    session = opened(world).session
    world.api.script("GET", "/policy", problem(403, "Forbidden", "you are not an admin"))
    answer = asked(world, "/api/policy", trainmaster_session=session)
    assert (answer.status, json.loads(answer.body)["detail"]) == (403, "you are not an admin")


def test_an_api_that_does_not_answer_is_said_and_where_it_should_be() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    nowhere = f"http://127.0.0.1:{port}/prod"
    with running_gateway(api_url=nowhere) as world:
        answer = asked(world, "/api/jobs", trainmaster_session=opened(world).session)
    assert answer.status == 503
    assert nowhere in json.loads(answer.body)["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("target", ["/api/jobs/job1", "/ui/"])
def test_what_is_no_get_is_refused_without_allow_changes(
    method: str, target: str, world: GatewayWorld
) -> None:
    session = opened(world).session
    assert asked(world, target, method, trainmaster_session=session).status == 403
    assert world.api.received == []


def test_T3_with_allow_changes_a_page_of_the_gateway_changes_a_job_and_one_of_another_port_does_not(
    changing: GatewayWorld,
) -> None:
    session = opened(changing).session
    changing.api.script("PATCH", "/jobs/job1", Scripted(document={"name": "job1"}))
    own = {
        "origin": f"http://127.0.0.1:{changing.port}",
        "sec_fetch_site": "same-origin",
    }
    body = b'{"priority": 5}'
    assert asked(changing, "/api/jobs/job1", "PATCH", body, trainmaster_session=session, **own).status == 200
    assert [one.body for one in changing.api.received] == [body]
    for others in (
        {"origin": "http://127.0.0.1:8888"},
        {"sec_fetch_site": "same-site"},
        {"origin": "null", "sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"},
    ):
        assert (
            asked(changing, "/api/jobs/job1", "PATCH", body, trainmaster_session=session, **others).status
            == 403
        )
    assert asked(changing, "/api/jobs/job1", "PATCH", body, **own).status == 403, "without the session"
    assert len(changing.api.received) == 1


@pytest.mark.parametrize(
    ("headers", "status_"),
    [
        pytest.param({"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors"}, 403, id="another port's"),
        pytest.param({"origin": "https://evil.example"}, 403, id="another origin's"),
        pytest.param({"sec_fetch_site": "same-site", "sec_fetch_mode": "navigate"}, 403, id="a link there"),
        pytest.param({"sec_fetch_site": "same-origin", "sec_fetch_mode": "cors"}, 200, id="its own"),
    ],
)
def test_a_read_that_another_page_sends_even_with_the_session_is_refused(
    headers: dict[str, str], status_: int, world: GatewayWorld
) -> None:
    session = opened(world).session
    world.api.script("GET", "/jobs", Scripted(document=JOBS))
    assert asked(world, "/api/jobs", trainmaster_session=session, **headers).status == status_
    assert len(world.api.received) == (status_ == 200)


@pytest.mark.parametrize("target", ["/ui", "/ui/", "/ui/app.js", "/ui/data/session", "/api/jobs"])
def test_T1_a_name_bound_to_this_machine_is_refused_even_with_the_session(
    target: str, world: GatewayWorld
) -> None:
    session = opened(world).session
    assert asked(world, target, host=f"evil.example:{world.port}", trainmaster_session=session).status == 403
    assert world.api.received == []


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:1"])
def test_a_forwarded_port_may_have_another_number(host: str, world: GatewayWorld) -> None:
    assert asked(world, "/ui/", host=host).status == 200


@pytest.mark.parametrize("port", ["", ":443", ":8888"])
def test_T4_behind_a_proxy_that_the_user_named_the_pages_work(port: str, proxied: GatewayWorld) -> None:
    host = f"Hub.example{port}"
    said = {
        "host": host,
        "x_forwarded_host": host,
        "x_forwarded_prefix": "/proxy",
        "x_forwarded_proto": "https",
    }
    own = {**said, "origin": f"https://hub.example{port}", "sec_fetch_site": "same-origin"}
    assert asked(proxied, "/ui/", **said).status == 200
    session = opened(proxied, **own).session
    proxied.api.script("GET", "/pools", Scripted(document={"pools": []}))
    assert asked(proxied, "/api/pools", trainmaster_session=session, **own).status == 200
    inner = {**own, "host": f"127.0.0.1:{proxied.port}"}  # of a proxy that writes its own
    assert asked(proxied, "/api/pools", trainmaster_session=session, **inner).status == 200


@pytest.mark.parametrize("behind", ["no proxy", "a proxy"])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example", "x_forwarded_for": "10.0.0.1"},
        {"host": "evil.example", "x_forwarded_host": "127.0.0.1"},
        {"host": "evil.example", "x_forwarded_prefix": "/user/a/proxy/4600"},
        {"host": "evil.example", "x_forwarded_proto": "https", "forwarded": "host=127.0.0.1"},
        {"x_forwarded_host": "evil.example"},
        {"x_forwarded_host": "127.0.0.1, evil.example"},
        {"host": "hub.example.evil.example", "x_forwarded_context": "/a"},
    ],
)
def test_T4_forwarded_headers_make_no_name_known(
    headers: dict[str, str], behind: str, world: GatewayWorld, proxied: GatewayWorld
) -> None:
    gateway = proxied if behind == "a proxy" else world
    gateway.api.forget()
    prefix = f"/user/a/proxy/absolute/{gateway.port}"
    for target in ("/ui/", "/ui", "/ui/app.js", f"{prefix}/ui/", f"{prefix}/api/jobs", "/api/jobs"):
        answer = asked(gateway, target, authorization=f"Bearer {TOKEN}", **headers)
        assert answer.status == 403, target
        assert "--behind-proxy HOST" in json.loads(answer.body)["detail"]
    token = token_of(new_ui_url(gateway.url))
    assert asked(gateway, "/ui/session", "POST", trainmaster_token=token, **headers).status == 403
    assert gateway.api.received == []


def test_T4_a_proxys_name_is_for_the_pages_and_not_for_sagemakers_calls(proxied: GatewayWorld) -> None:
    target = {"x_amz_target": "SageMaker.ListTrainingJobs", "content_type": "application/x-amz-json-1.1"}
    assert asked(proxied, f"/{TOKEN}/", "POST", "{}", host="hub.example", **target).status == 403
    assert proxied.sagemaker.calls == []


def test_T4_another_port_of_the_proxys_host_is_another_page(proxied: GatewayWorld) -> None:
    session = opened(proxied).session
    others = {"host": "hub.example", "origin": "https://hub.example:9999", "sec_fetch_site": "same-site"}
    assert asked(proxied, "/api/jobs", trainmaster_session=session, **others).status == 403


def test_a_prefix_that_is_left_in_the_path_is_taken_away(world: GatewayWorld) -> None:
    prefix = f"/user/a/proxy/absolute/{world.port}"
    assert asked(world, f"{prefix}/ui/").status == 200
    page = opened(world, prefix)
    world.api.script("GET", "/jobs/job1", Scripted(document={"name": "job1"}))
    assert asked(world, f"{prefix}/api/jobs/job1", trainmaster_session=page.session).status == 200
    assert asked(world, f"{prefix}/ui").headers["location"] == "ui/"  # browsers keep the fragment


@pytest.mark.parametrize(
    ("headers", "status_"),
    [
        pytest.param({"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}, 200, id="a link"),
        pytest.param({"sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}, 403, id="a frame"),
        pytest.param({"sec_fetch_mode": "no-cors", "sec_fetch_dest": "script"}, 403, id="a script"),
        pytest.param({}, 403, id="a browser that does not say"),
    ],
)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_of_other_pages_a_link_alone_opens_the_empty_shell(
    site: str, headers: dict[str, str], status_: int, world: GatewayWorld
) -> None:
    for target in ("/ui/", "/ui"):
        answer = asked(world, target, sec_fetch_site=site, **headers)
        assert answer.status == (307 if (target, status_) == ("/ui", 200) else status_)
    assert asked(world, "/ui/app.js", sec_fetch_site=site, **headers).status == 403


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/../x", "/api/a/%2e%2E/b", "/api//evil.example/x"])
def test_a_path_that_names_another_place_than_it_says_is_none(path: str, world: GatewayWorld) -> None:
    assert asked(world, path, trainmaster_session=opened(world).session).status == 404
    assert world.api.received == []


def test_a_program_reads_the_api_with_the_gateways_own_token(world: GatewayWorld) -> None:
    world.api.script("GET", "/jobs", Scripted(document=JOBS))
    answer = asked(world, "/api/jobs", authorization=f"Bearer {TOKEN}")
    assert (answer.status, "set-cookie" in answer.headers) == (200, False)
    assert asked(world, "/api/jobs", authorization="Bearer wrong").status == 403
    said = status(world.url)
    assert said is not None
    assert said["operations"]["GET /api"]["errors"]["403"] >= 1


def test_keys_that_expired_are_renewed_and_the_page_sees_nothing_of_it() -> None:
    keys = [Credentials("AKIDOLD", "old", "token"), Credentials(ACCESS_KEY, SECRET_KEY)]
    with running_gateway(lambda: keys.pop(0) if len(keys) > 1 else keys[0]) as world:
        world.api.refusal = Scripted(
            status=403,
            document={"message": "The security token included in the request is expired"},
            headers={"content-type": "application/json", "x-amzn-ErrorType": "ExpiredTokenException"},
        )
        world.api.script("GET", "/jobs", Scripted(document=JOBS))
        assert asked(world, "/api/jobs", trainmaster_session=opened(world).session).status == 200


def test_only_who_has_the_gateways_token_gets_a_new_link(world: GatewayWorld) -> None:
    assert new_ui_url(f"{world.url}x") is None
    assert asked(world, f"/{TOKEN}/ui-url", "POST", origin="https://evil.example").status == 403
