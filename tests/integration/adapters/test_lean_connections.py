"""Bytes on a socket: a lean client and botocore's own make the same of every answer of a server."""

import io
import json
import socket
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from http.client import LineTooLong, parse_headers
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any
from unittest import mock

import botocore.session
import pytest
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
)
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.adapters.lean_client import LeanClient
from trainmaster.adapters.lean_connections import head_lines

KEY = {"pk": {"S": "a"}, "sk": {"S": "b"}}
GET = {"TableName": "t", "Key": KEY}
BODY = json.dumps({"Item": KEY}).encode()
CRC = f"x-amz-crc32: {zlib.crc32(BODY)}\r\n".encode()
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%b\r\n%b" % (len(BODY), CRC, BODY)
HANG_UP = b""


@dataclass(slots=True)
class Server:
    """Answers each request with the next bytes it was given; HANG_UP closes the connection instead."""

    answers: list[bytes]
    closes: bool = False
    """After each answer, as one that promised nothing else."""
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    _socket: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _done: Event = field(default_factory=Event)
    hung_up: Event = field(default_factory=Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def start(self) -> None:
        Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._done.set()
        self._socket.close()

    def _accept(self) -> None:
        while not self._done.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            with connection:
                self._serve(connection)
            self.hung_up.set()

    def _serve(self, connection: socket.socket) -> None:
        while request := _read(connection):
            self.requests.append(request)
            if not self.answers:
                self._done.wait()  # no answer at all
                return
            answer = self.answers.pop(0)
            connection.sendall(answer)
            if answer == HANG_UP or self.closes:
                return


def _read(connection: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        piece = connection.recv(65536)
        if not piece:
            return b""
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    length = parse_headers(io.BytesIO(head.partition(b"\r\n")[2] + b"\r\n\r\n"))["content-length"]
    while len(body) < int(length):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server([])
    found.start()
    with mock.patch("botocore.endpoint.time", SimpleNamespace(sleep=lambda _: None)):
        yield found
    found.stop()


@pytest.fixture(params=["botocore", "lean"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def client_of(url: str, kind: str, *, attempts: int = 3, read_timeout: float = 5) -> Any:
    retries: Any = {"mode": "standard", "total_max_attempts": attempts}
    config = Config(retries=retries, read_timeout=read_timeout)
    client = _session().create_client("dynamodb", "us-east-1", endpoint_url=url, config=config)
    return LeanClient(client) if kind == "lean" else client


@cache
def _session() -> botocore.session.Session:
    """One for all clients: each session reads botocore's endpoints again."""
    session = botocore.session.get_session()
    session.set_credentials("testing", "testing")
    return session


@pytest.mark.parametrize(
    ("answer", "connections"),
    [
        pytest.param(WHOLE, 1, id="of a known length"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n"
            % (BODY[:5], len(BODY) - 5, BODY[5:]),
            1,
            id="in chunks",
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE, 1, id="announced"),
        pytest.param(WHOLE.replace(b"OK", b"", 1), 1, id="without a reason"),
        pytest.param(
            WHOLE.replace(b"\r\n", b"\r\nConnection: close\r\n", 1), 2, id="the last of its connection"
        ),
        pytest.param(WHOLE.replace(b"HTTP/1.1", b"HTTP/1.0"), 2, id="of an old proxy"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n" + BODY, 2, id="until the connection ends"),
    ],
)
def test_an_answer(server: Server, kind: str, answer: bytes, connections: int) -> None:
    server.answers = [answer, answer]
    server.closes = connections > 1
    client = client_of(server.url, kind)
    for _ in range(2):
        assert client.get_item(**GET)["Item"] == KEY
    assert (len(server.requests), server.connections) == (2, connections)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(HANG_UP, id="hangs up"),
        pytest.param(WHOLE.replace(BODY, BODY[:9]) + HANG_UP, id="hangs up within the body"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n%b\r\n5\r\nab" % CRC, id="within a chunk"
        ),
        pytest.param(b"garbage\r\n\r\n", id="no HTTP"),
    ],
)
def test_a_server_that_does_not_answer_properly_is_asked_again(
    server: Server, kind: str, trouble: bytes
) -> None:
    server.answers, server.closes = [trouble, WHOLE], True
    assert client_of(server.url, kind).get_item(**GET)["Item"] == KEY
    assert len(server.requests) == 2


def test_a_connection_that_was_closed_while_idle_costs_no_try(server: Server, kind: str) -> None:
    server.answers, server.closes = [WHOLE, WHOLE], True
    client = client_of(server.url, kind, attempts=1)
    assert client.get_item(**GET)["Item"] == KEY
    assert server.hung_up.wait(timeout=10)
    assert client.get_item(**GET)["Item"] == KEY
    assert server.connections == 2


def test_who_hangs_up_each_time_is_named_by_botocores_error(server: Server, kind: str) -> None:
    server.answers = [HANG_UP] * 3
    with pytest.raises(ConnectionClosedError):
        client_of(server.url, kind).get_item(**GET)
    assert len(server.requests) == 3


def test_no_answer_in_time_is_a_read_timeout(server: Server, kind: str) -> None:
    with pytest.raises(ReadTimeoutError):
        client_of(server.url, kind, attempts=1, read_timeout=0.05).get_item(**GET)
    assert len(server.requests) == 1


def test_half_an_answer_in_time_is_a_read_timeout(server: Server, kind: str) -> None:
    server.answers = [WHOLE[:-3]]
    with pytest.raises(ReadTimeoutError):
        client_of(server.url, kind, attempts=1, read_timeout=0.05).get_item(**GET)


def test_nobody_listens(server: Server, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(EndpointConnectionError):
        client_of(url, kind, attempts=1).get_item(**GET)


def test_a_page_of_a_load_balancer_is_an_error_with_its_status(server: Server, kind: str) -> None:
    server.answers = [b"HTTP/1.1 503 Slow Down\r\nContent-Length: 13\r\n\r\n<html></html>"] * 3
    with pytest.raises(ClientError) as error:
        client_of(server.url, kind).get_item(**GET)
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    assert (len(server.requests), server.connections) == (3, 1)


def test_what_arrives_says_where_from_and_how_long_in_one_packet(server: Server, kind: str) -> None:
    server.answers = [WHOLE]
    client_of(server.url, kind).get_item(**GET)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, _, lines = head.partition(b"\r\n")
    headers = parse_headers(io.BytesIO(lines + b"\r\n\r\n"))
    assert first == b"POST / HTTP/1.1"
    assert headers["Host"] == server.url.removeprefix("http://")
    assert headers["Accept-Encoding"] == "identity"
    assert "accept-encoding" not in headers["Authorization"], "a proxy may change it"
    assert int(headers["Content-Length"]) == len(body)
    assert len(headers.keys()) == len(set(headers.keys()))


def test_operations_of_the_whole_client_share_its_connection(server: Server) -> None:
    tables = b'{"TableNames":["t"]}'
    server.answers = [
        WHOLE,
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(tables), tables),
        WHOLE,
    ]
    plain = client_of(server.url, "botocore")
    lean = LeanClient(plain, only=["get_item"])
    assert lean.get_item(**GET)["Item"] == KEY
    assert lean.list_tables()["TableNames"] == ["t"]
    assert lean.get_item(**GET)["Item"] == KEY
    assert server.connections == 1
    for request in server.requests:
        assert b"\r\nAuthorization: AWS4-HMAC-SHA256 Credential=testing/" in request
        assert b": b'" not in request, "botocore has bytes as values"


names = st.text("AZaz09-", min_size=1, max_size=9).filter(lambda name: name.strip("-") == name)
values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40).map(str.strip)


@given(st.lists(st.tuples(names, values), max_size=20, unique_by=lambda one: one[0].lower()))
def test_headers_are_read_as_the_standard_library_reads_them(headers: list[tuple[str, str]]) -> None:
    sent = "".join(f"{name}: {value}\r\n" for name, value in headers).encode() + b"\r\nrest"
    ours, theirs = io.BytesIO(sent), io.BytesIO(sent)
    assert head_lines(ours) == {name.lower(): value for name, value in parse_headers(theirs).items()}
    assert ours.read() == theirs.read() == b"rest"


def test_a_folded_and_a_repeated_header_are_one_value_each() -> None:
    sent = b"a: one\r\n two\r\nB: 1\r\nb: 2\r\n\r\n"
    assert head_lines(io.BytesIO(sent)) == {"a": "one two", "b": "1, 2"}


@pytest.mark.parametrize("head", [b"a: " + b"b" * 70_000 + b"\r\n\r\n", b"a: b\r\n" * 200 + b"\r\n"])
def test_a_head_without_end_is_refused(server: Server, head: bytes) -> None:
    with pytest.raises(LineTooLong):
        head_lines(io.BytesIO(head))
    server.answers = [b"HTTP/1.1 200 OK\r\n" + head] * 3
    with pytest.raises(HTTPClientError):
        client_of(server.url, "lean").get_item(**GET)
