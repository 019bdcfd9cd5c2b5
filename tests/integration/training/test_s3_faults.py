"""Ranges of objects while S3 refuses, breaks off, answers something else, or has other objects by now."""

import socket
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import SplitResult

import pytest

from tests.integration.training.buckets import (
    CREDENTIALS,
    CUT,
    RESET,
    SHIFTED,
    WHOLE,
    Fault,
    S3Server,
    s3_server,
)
from training.data.s3 import S3Place, s3_client
from training.data.signed import SignedReads, Span, _Closing
from training.errors import DataError

CONTENT = bytes(range(256)) * 4
KEY = "corpora/one/shard"
FAULTS = [
    pytest.param("SlowDown", 503, id="it is asked to slow down"),
    pytest.param("InternalError", 500, id="S3 fails"),
    pytest.param("", RESET, id="the connection ends before the answer"),
    pytest.param("", CUT, id="the connection ends in the middle of the body"),
    pytest.param("", SHIFTED, id="the answer is another range"),
    pytest.param("", WHOLE, id="the answer is the whole object"),
    pytest.param("ExpiredToken", 400, id="the signature has expired"),
    pytest.param("AuthorizationHeaderMalformed", 400, id="the signature is of another region"),
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with s3_server() as served:
        for name, value in served.env.items():
            monkeypatch.setenv(name, value)
        served.client().create_bucket(Bucket="bucket")
        served.client().put_object(Bucket="bucket", Key=KEY, Body=CONTENT)
        yield served


def _place(*, attempts: int = 1) -> S3Place:
    return S3Place(s3_client(attempts=attempts), bucket="bucket", prefix="corpora/one")


def _gets(server: S3Server) -> int:
    return sum(method == "GET" and path.endswith(KEY) for method, path in server.served)


def _broken(server: S3Server, code: str, status: int, *, times: int = 1_000_000) -> Fault:
    fault = Fault(method="GET", key_has=KEY, code=code, status=status, times=times)
    server.faults.append(fault)
    return fault


def _told(place: S3Place) -> str:
    with pytest.raises(DataError) as caught:
        place.read("shard", 100, 50)
    assert "Signature" not in str(caught.value)
    return str(caught.value)


def test_a_range_is_one_request_and_ends_where_the_object_ends(server: S3Server) -> None:
    place = _place()
    assert place.sizes() == {"shard": 1024}
    assert place.read("shard", 100, 50) == CONTENT[100:150]
    assert place.read("shard", 1000, 100) == CONTENT[1000:]
    assert place.read("shard", 5, 0) == b""
    assert _gets(server) == 2


@pytest.mark.parametrize(("code", "status"), FAULTS)
def test_what_goes_wrong_once_changes_nothing(server: S3Server, code: str, status: int) -> None:
    place = _place()
    fault = _broken(server, code, status, times=1)
    assert place.read("shard", 100, 50) == CONTENT[100:150]
    assert fault.times == 0
    assert _gets(server) == 2
    assert place.read("shard", 0, 10) == CONTENT[:10]
    assert _gets(server) == 3


@pytest.mark.parametrize("status", [CUT, SHIFTED, WHOLE])
def test_a_body_that_goes_wrong_for_boto3_too_is_asked_for_again(server: S3Server, status: int) -> None:
    place = _place()
    fault = _broken(server, "", status, times=3)
    assert place.read("shard", 100, 50) == CONTENT[100:150]
    assert fault.times == 0


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("SlowDown", 503, "S3 answers SlowDown, after retries; start the job again"),
        ("InternalError", 500, "S3 answers InternalError, after retries; start the job again"),
        ("", RESET, "ConnectionClosedError"),
        ("", CUT, "25 bytes read, 25 more expected"),
        (
            "",
            SHIFTED,
            "bytes=100-149 was asked for, S3 answers bytes 101-150/1024, after retries; start the job",
        ),
        ("", WHOLE, "bytes=100-149 was asked for, S3 answers without a range, after retries"),
        ("ExpiredToken", 400, "S3 answers ExpiredToken; the credentials of this process are missing or have"),
    ],
)
def test_what_stays_wrong_is_an_error_that_names_the_object(
    server: S3Server, code: str, status: int, told: str
) -> None:
    place = _place()
    _broken(server, code, status)
    message = _told(place)
    assert message.startswith("data s3://bucket/corpora/one/shard: ")
    assert told in message


def test_an_object_that_is_replaced_between_two_ranges_is_never_mixed(server: S3Server) -> None:
    place, unlisted = _place(), _place()
    place.sizes()
    assert unlisted.read("shard", 0, 10) == CONTENT[:10]
    server.client().put_object(Bucket="bucket", Key=KEY, Body=CONTENT[::-1])
    for one in (place, unlisted):
        assert "PreconditionFailed: the object was replaced since this attempt began" in _told(one)
    place.sizes()
    assert place.read("shard", 0, 10) == CONTENT[::-1][:10]


def test_a_process_without_credentials_is_told_so(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)  # it keeps the credentials that it has found
    for name in CREDENTIALS:
        if "KEY" in name:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "Unable to locate credentials; the credentials of this process are missing" in _told(_place())


class _Counting(SignedReads):
    """By addresses alone."""

    signed = 0

    def _address(self, key: str) -> SplitResult:
        before = dict(self._addresses)
        found = super()._address(key)
        self.signed += self._addresses != before
        return found


def _signed(*, clock: list[float] | None = None, bucket: str = "bucket") -> _Counting:
    now = clock if clock is not None else [0.0]
    return _Counting(s3_client(attempts=1), bucket=bucket, clock=lambda: now[0])


SPAN = Span(offset=0, size=4, etag=None)


def test_an_address_is_signed_once_in_ten_minutes(server: S3Server) -> None:
    clock = [0.0]
    reads = _signed(clock=clock)
    for now, signed in [(0.0, 1), (599.0, 1), (600.0, 2)]:
        clock[0] = now
        body = reads.read(KEY, SPAN)
        assert body is not None
        assert body.content == CONTENT[:4]
        assert reads.signed == signed
    assert _gets(server) == 3


def test_an_address_that_was_refused_is_signed_anew(server: S3Server) -> None:
    reads = _signed()
    assert reads.read(KEY, SPAN)
    _broken(server, "ExpiredToken", 400, times=1)
    assert reads.read(KEY, SPAN) is None
    assert reads.read(KEY, SPAN)
    assert reads.signed == 2


def test_three_refusals_in_a_row_and_boto3_is_asked_at_once(server: S3Server) -> None:
    reads = _signed()
    fault = _broken(server, "AccessDenied", 403, times=2)
    assert reads.read(KEY, SPAN) is None
    assert reads.read(KEY, SPAN) is None
    assert reads.read(KEY, SPAN)  # a success in between
    fault.times = 3
    for _ in range(4):
        assert reads.read(KEY, SPAN) is None
    assert fault.times == 0
    assert _gets(server) == 6


def test_a_busy_s3_does_not_end_the_use_of_addresses(server: S3Server) -> None:
    reads = _signed()
    _broken(server, "SlowDown", 503, times=9)
    for _ in range(9):
        assert reads.read(KEY, SPAN) is None
    assert reads.read(KEY, SPAN)


def test_proxies_and_directory_buckets_are_left_to_boto3(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _signed(bucket="bucket--use1-az4--x-s3").read(KEY, SPAN) is None
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert _signed().read(KEY, SPAN) is None
    assert _gets(server) == 0


def test_a_connection_that_the_server_ended_meanwhile_is_opened_again(server: S3Server) -> None:
    reads = _signed()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = HTTPConnection(*listener.getsockname())
        ended.connect()
        listener.accept()[0].close()
    reads._idle.append(_Closing(ended))
    assert reads.read(KEY, SPAN)
    (kept,) = reads._idle
    assert kept.http is not ended


def test_a_connection_is_used_again_by_any_thread_and_not_after_an_error(server: S3Server) -> None:
    reads = _signed()
    assert reads.read(KEY, SPAN)
    (kept,) = reads._idle
    other = threading.Thread(target=reads.read, args=(KEY, SPAN))
    other.start()
    other.join(30)
    assert reads._idle == [kept]
    http = kept.http
    del kept
    _broken(server, "", CUT, times=1)
    assert reads.read(KEY, SPAN) is None
    assert reads._idle == []
    assert http.sock is None


@pytest.mark.parametrize(
    ("told", "length", "is_it"),
    [
        pytest.param("bytes 10-19/100", 10, True, id="as asked"),
        pytest.param("bytes 10-14/15", 5, True, id="the object ends earlier"),
        pytest.param("bytes 10-14/100", 5, False, id="fewer than there are"),
        pytest.param("bytes 10-19/100", 9, False, id="a body of another length"),
        pytest.param("bytes 10-19/100", None, False, id="a body of unknown length"),
        pytest.param("bytes 0-9/100", 10, False, id="another range"),
        pytest.param("bytes 10-19/*", 10, False, id="of unknown size"),
        pytest.param("items 10-19/100", 10, False, id="another unit"),
        pytest.param(None, 10, False, id="no range"),
    ],
)
def test_an_answer_is_held_to_the_range_that_was_asked_for(
    told: str | None, length: int | None, *, is_it: bool
) -> None:
    assert Span(offset=10, size=10, etag=None).is_answered_by(told, length) is is_it


def test_parts_side_by_side_are_one_request_and_their_connection_is_used_again(server: S3Server) -> None:
    place = _place()
    place.sizes()
    before = _gets(server)
    assert list(place.stream("shard", 100, [50, 60, 7])) == [
        CONTENT[100:150],
        CONTENT[150:210],
        CONTENT[210:217],
    ]
    assert _gets(server) == before + 1
    (kept,) = place._signed._idle
    assert list(place.stream("shard", 1000, [20, 4])) == [CONTENT[1000:1020], CONTENT[1020:]]
    assert place._signed._idle == [kept]


@pytest.mark.parametrize(("code", "status"), FAULTS)
def test_parts_end_early_where_something_is_wrong_and_none_of_them_is_wrong(
    server: S3Server, code: str, status: int
) -> None:
    place = _place()
    place.sizes()
    _broken(server, code, status, times=1)
    parts = list(place.stream("shard", 100, [50, 60, 7]))
    assert len(parts) < 3
    assert b"".join(parts) == CONTENT[100 : 100 + sum(map(len, parts))]
    assert place.read("shard", 150, 60) == CONTENT[150:210]


def test_parts_of_an_object_that_was_replaced_are_not_given(server: S3Server) -> None:
    place = _place()
    place.sizes()
    server.client().put_object(Bucket="bucket", Key=KEY, Body=CONTENT[::-1])
    assert list(place.stream("shard", 100, [50, 60])) == []
    assert "the object was replaced" in _told(place)


def test_without_a_listing_no_parts_are_given_as_the_version_is_unknown(server: S3Server) -> None:
    assert list(_place().stream("shard", 0, [10, 10])) == []
