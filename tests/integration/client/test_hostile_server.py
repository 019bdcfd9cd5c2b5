"""A server that means harm in the API's place: the command ends, in a line, and no key goes elsewhere."""

import gzip
import json
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch

import boto3
import pytest
from trainmaster_client import errors
from trainmaster_client.api import ApiClient
from trainmaster_client.gateway.gateway_files import new_ui_url, status
from trainmaster_client.http.bounded_answers import LARGEST_ANSWER_BYTES

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import ACCESS_KEY, REGION, SECRET_KEY, FakeApi, Scripted, problem
from tests.integration.client.gateway_world import TOKEN, running_gateway
from tests.integration.client.test_gateway_pages import asked

Hostility = Callable[[socket.socket, threading.Event], None]
"""Answers one request on a connection until the event says that the test is over."""
JSON = b"content-type: application/json\r\n"
MOST_BYTES = 60_000_000
YEAR = b"retry-after: %d\r\n" % (365 * 24 * 3600)
MANY_DIGITS = b"retry-after: " + b"9" * 5000 + b"\r\n"


@contextmanager
def hostile(answer: Hostility) -> Iterator[tuple[str, list[bytes]]]:
    """Its URL, and the requests that it heard."""
    heard: list[bytes] = []
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    def talk(connection: socket.socket) -> None:
        with connection:
            try:
                heard.append(connection.recv(65536))
                answer(connection, over)
            except OSError:  # the client has left, as it should
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        accepting = threading.Thread(target=serve, daemon=True)
        accepting.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/prod", heard
        over.set()
        server.shutdown(socket.SHUT_RDWR)
        accepting.join()


def said(head: bytes, body: bytes = b"") -> Hostility:
    return lambda connection, _: connection.sendall(head + b"\r\n" + body)


def endless(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n" + JSON + b'\r\n{"jobs": [')
    while not over.is_set():
        connection.sendall(b'"aaaaaaaa",' * 10_000)


def endless_chunks(connection: socket.socket, over: threading.Event) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" + JSON + b"\r\n")
    while not over.is_set():
        connection.sendall(b"10000\r\n" + b"a" * 0x10000 + b"\r\n")


def drip(head: bytes, drop: bytes) -> Hostility:
    """A little again and again, each well within a read's timeout."""

    def answer(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        while not over.wait(0.02):
            connection.sendall(drop)

    return answer


@cache
def packed() -> bytes:
    """200 MB of brackets, in members of 1 MB."""
    return gzip.compress(b"[" * 1_000_000) * 200


def gzip_bomb(connection: socket.socket, _: threading.Event) -> None:
    body = packed()
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n".encode()
    connection.sendall(head + JSON + b"\r\n" + body)


def sized(status_line: bytes, body: bytes, headers: bytes = JSON) -> Hostility:
    return said(status_line + b"\r\n" + headers + f"content-length: {len(body)}\r\n".encode(), body)


OK = b"HTTP/1.1 200 OK"
ANSWERS: dict[str, Hostility] = {
    "a body without an end": endless,
    "chunks without an end": endless_chunks,
    "a length that nobody can keep": said(OK + b"\r\n" + JSON + b"content-length: 99999999999\r\n", b"{"),
    "a length of many digits": said(OK + b"\r\ncontent-length: " + b"9" * 5000 + b"\r\n", b"{"),
    "a body that drips": drip(OK + b"\r\n" + JSON + b"\r\n{", b" "),
    "headers that drip": drip(OK + b"\r\nx-slow: ", b"a"),
    "headers without an end": drip(OK + b"\r\n", b"x-more: a\r\n" * 50),
    "continue without an end": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "a gzip bomb": gzip_bomb,
    "nesting without an end": sized(OK, b"[" * 1_000_000),
    "an object nested without an end": sized(OK, b'{"a":' * 500_000),
    "half a character": sized(OK, b'{"a": "\xff"}'),
    "a wait of a year": sized(
        b"HTTP/1.1 429 Too Many Requests", b'{"detail": "later"}', JSON + YEAR
    ),
    "a wait of many digits": sized(
        b"HTTP/1.1 429 Too Many Requests", b'{"detail": "later"}', JSON + MANY_DIGITS
    ),
    "a wait of a year after a failure": sized(
        b"HTTP/1.1 503 Unavailable", b'{"detail": "later"}', JSON + YEAR
    ),
    "a story in place of a reason": sized(
        b"HTTP/1.1 500 No", json.dumps({"detail": "word " * 500_000}).encode()
    ),
    "a date outside of the calendar": sized(
        b"HTTP/1.1 500 No", b"{}", JSON + b"date: Fri, 31 Dec 9999 23:59:59 -9999999999999999\r\n"
    ),
    "no HTTP": said(b"\x00\x01\x02" * 100),
}  # fmt: skip


@pytest.fixture
def quick() -> Iterator[None]:
    """As in life, but for how long each wait is."""
    with (
        patch("trainmaster_client.http.transport.LONGEST_ANSWER_SECONDS", 2.0),
        patch("trainmaster_client.http.transport.FIRST_PAUSE_SECONDS", 0.0),
    ):
        yield


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_T6_a_hostile_answer_is_one_line_with_exit_code_3(
    answer: Hostility, trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hostile(answer) as (url, heard):
        monkeypatch.setenv("TRAINMASTER_API_URL", url)
        tracemalloc.start()
        ran = trainmaster("queue")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("trainmaster: ")
    assert len(ran.err.strip().splitlines()) == 1
    assert len(ran.err) < 3000
    assert peak < MOST_BYTES
    assert len(heard) <= 3


@pytest.mark.parametrize("status_code", [301, 302, 303, 307, 308])
def test_T6_a_redirect_to_another_host_is_not_followed_and_nothing_signed_goes_there(
    status_code: int, trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hostile(sized(OK, b'{"jobs": []}')) as (other, heard_there):
        there = f"location: {other.replace('127.0.0.1', 'localhost')}/jobs\r\n".encode()
        with hostile(sized(b"HTTP/1.1 %d Elsewhere" % status_code, b"", there)) as (url, heard):
            monkeypatch.setenv("TRAINMASTER_API_URL", url)
            ran = trainmaster("queue")
    assert (ran.code, ran.out, heard_there) == (3, "", [])
    assert len(ran.err.strip().splitlines()) == 1
    assert "a redirect to http://localhost" in ran.err
    assert len(heard) == 1


def test_an_answer_of_the_largest_length_is_read(api: FakeApi, boto_session: boto3.Session) -> None:
    padding = "x" * (LARGEST_ANSWER_BYTES - 100)
    api.script("GET", "/me", Scripted(document={"padding": padding}))
    assert ApiClient(api.url, boto_session).me()["padding"] == padding
    api.script("GET", "/me", Scripted(document={"padding": padding + "x" * 100}))
    with pytest.raises(errors.UnexpectedAnswerError, match="longer than 10 MiB"):
        ApiClient(api.url, boto_session).me()


def test_T6_a_list_whose_pages_have_no_end_is_left(api: FakeApi, boto_session: boto3.Session) -> None:
    pages = [Scripted(document={"pools": [{"name": "x" * 1000}], "next_token": str(n)}) for n in range(100)]
    api.script("GET", "/pools", *pages)
    with (
        patch("trainmaster_client.http.calls._MOST_LIST_BYTES", 20_000),
        pytest.raises(errors.UnexpectedAnswerError, match="the pages of its list"),
    ):
        ApiClient(api.url, boto_session).pools()
    assert len(api.received) < 25
    api.script("GET", "/pools", Scripted(document={"pools": 5, "next_token": "1"}))
    with pytest.raises(errors.UnexpectedAnswerError, match="pools is not a list"):
        ApiClient(api.url, boto_session).pools()


def test_a_wait_of_some_hours_is_still_the_apis_word(api: FakeApi, boto_session: boto3.Session) -> None:
    busy = problem(429, "Too many requests", "100 a minute")
    api.script("GET", "/me", Scripted(status=429, document=busy.document, headers={"Retry-After": "7200"}))
    with pytest.raises(errors.TooManyRequestsError, match="try again in 7200 s"):
        ApiClient(api.url, boto_session).me()


GATEWAY_ANSWERS: dict[str, Hostility] = {
    "a body without an end": endless,
    "nesting without an end": sized(OK, b"[" * 100_000),
    "a body that drips": drip(OK + b"\r\n" + JSON + b"\r\n{", b" "),
    "a page of another": sized(OK, b'{"ui_url": "https://evil.example/ui/#token=1"}'),
    "a script": sized(OK, b'{"ui_url": "javascript:alert(1)"}'),
    "an escape sequence": sized(OK, b'{"ui_url": "http://127.0.0.1:4600/ui/\\u001b[2J"}'),
    "no text": sized(OK, b'{"ui_url": 5}'),
    "no HTTP": said(b"\x00\x01\x02" * 100),
}


@pytest.mark.parametrize("answer", GATEWAY_ANSWERS.values(), ids=GATEWAY_ANSWERS)
def test_T6_another_program_on_the_gateways_port_gives_no_link(answer: Hostility) -> None:
    with hostile(answer) as (url, _), patch("trainmaster_client.gateway.gateway_files.STATUS_SECONDS", 1.0):
        assert new_ui_url(f"{url.removesuffix('/prod')}/{TOKEN}") is None


def test_T6_the_gateways_token_is_sent_to_no_other_address() -> None:
    with hostile(sized(OK, b"{}")) as (other, heard_there):
        redirect = sized(b"HTTP/1.1 307 Elsewhere", b"", f"location: {other}/x\r\n".encode())
        with hostile(redirect) as (url, heard):
            assert status(f"{url}/{TOKEN}") is None
            assert new_ui_url(f"{url}/{TOKEN}") is None
    assert (len(heard), heard_there) == (2, [])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["a body without an end", "headers that drip", "a gzip bomb"])
def test_T6_the_gateway_says_so_to_its_page_and_to_its_programs(name: str) -> None:
    with hostile(ANSWERS[name]) as (url, _), running_gateway(api_url=url) as world:
        answer = asked(world, "/api/jobs", authorization=f"Bearer {TOKEN}")
        if name != "a gzip bomb":  # which is passed on as it came, and unpacked by nobody here
            assert answer.status == 503
            assert "answered, but not like" in json.loads(answer.body)["detail"]
        assert len(answer.body) < LARGEST_ANSWER_BYTES


def test_the_answers_of_the_hostile_server_are_heard_with_the_callers_key(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the tests above say something of keys."""
    with hostile(sized(OK, b'{"jobs": []}')) as (url, heard):
        monkeypatch.setenv("TRAINMASTER_API_URL", url)
        assert trainmaster("queue").code == 0
    assert ACCESS_KEY.encode() in heard[0]
    assert SECRET_KEY.encode() not in heard[0]
    assert REGION.encode() in heard[0]
