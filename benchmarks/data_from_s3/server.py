"""A small S3 over a folder, fast enough that its clients are what is measured.

moto parses every request in Python under one lock and copies every body: with it, all readers look alike.
Here a thread for each connection reads the request's head and hands the file to the kernel (`sendfile`). It
speaks GET with ranges and If-Match, HEAD and ListObjectsV2, checks no signature, and runs in a process of its
own, so that CPU seconds of a client are the client's.

`python -m benchmarks.data_from_s3.server FOLDER [MS MB]` prints its port; the folders in FOLDER are buckets.
With MS and MB an answer begins after so many milliseconds, and a connection carries so many MB a second.
"""

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import md5
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

COUNTS = "/-/counts"
"""Path that answers with what was served since it was last read."""
_HEAD_BYTES = 2**16
_END = b"\r\n\r\n"
_PAGE = 1000
_PACED_BYTES = 2**18
"""Bytes between two waits of a connection with a rate."""
_REASONS = {200: "OK", 206: "Partial Content", 404: "Not Found", 412: "Precondition Failed", 416: "Bad Range"}


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    file: Path | None = None
    offset: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Network:
    """Network between a client and S3: it adds a wait before each answer, and bounds each connection."""

    wait_seconds: float
    bytes_a_second: float

    def paced(self, began: float, sent: int) -> None:
        """Wait until a connection that began then may have carried so many bytes."""
        time.sleep(max(0.0, began + sent / self.bytes_a_second - time.monotonic()))


@dataclass(slots=True)
class Counts:
    requests: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    """Bytes of bodies."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cpu: float = field(default_factory=time.process_time)

    def add(self, kind: str, size: int) -> None:
        with self._lock:
            self.requests[kind] = self.requests.get(kind, 0) + 1
            self.sent += size

    def taken(self) -> bytes:
        """Return the counts as JSON, and count from zero again."""
        with self._lock:
            now = time.process_time()
            counts = {"requests": self.requests, "bytes": self.sent, "cpu": now - self._cpu}
            self.requests, self.sent, self._cpu = {}, 0, now
        return json.dumps(counts).encode()


class Bucket:
    """Keys are paths below a folder; they do not change while it is served."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        self._sizes = {key: (folder / key).stat().st_size for key in files}

    def listed(self, query: Mapping[str, list[str]]) -> Answer:
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", [""])[0]
        keys = [key for key in self._sizes if key.startswith(prefix) and key > after]
        if query.get("delimiter") == ["/"]:
            keys = [key for key in keys if "/" not in key[len(prefix) :]]
        page, is_truncated = keys[:_PAGE], len(keys) > _PAGE
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;{self._etag(key)}&quot;</ETag><Size>{self._sizes[key]}</Size>"
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for key in page
        )
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if is_truncated else ""
        body = (
            f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>{self._folder.name}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
            f"<MaxKeys>{_PAGE}</MaxKeys><IsTruncated>{str(is_truncated).lower()}</IsTruncated>{token}{contents}</ListBucketResult>"
        )
        return Answer(200, {"Content-Type": "application/xml"}, body.encode())

    def object(self, key: str, headers: Mapping[str, str]) -> Answer:
        if key not in self._sizes:
            return _error(404, "NoSuchKey")
        size, etag = self._sizes[key], f'"{self._etag(key)}"'
        if headers.get("if-match", etag) != etag:
            return _error(412, "PreconditionFailed")
        fields = {
            "ETag": etag,
            "Accept-Ranges": "bytes",
            "Content-Type": "binary/octet-stream",
            "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT",
        }
        path = self._folder / key
        if "range" not in headers:
            return Answer(200, fields, file=path, size=size)
        first, _, last = headers["range"].removeprefix("bytes=").partition("-")
        begin, end = int(first), min(int(last or size), size - 1)
        if begin >= size:
            return _error(416, "InvalidRange")
        fields["Content-Range"] = f"bytes {begin}-{end}/{size}"
        return Answer(206, fields, file=path, offset=begin, size=end - begin + 1)

    def _etag(self, key: str) -> str:
        return md5(f"{key}{self._sizes[key]}".encode(), usedforsecurity=False).hexdigest()


def _error(status: int, code: str) -> Answer:
    body = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
    return Answer(status, {"Content-Type": "application/xml"}, body)


@dataclass(slots=True)
class Server:
    folder: Path
    network: Network | None = None
    """Network that is put in; None: the server answers as fast as this machine is."""
    counts: Counts = field(default_factory=Counts)
    _buckets: dict[str, Bucket] = field(default_factory=dict)

    def serve(self, listener: socket.socket) -> None:
        """Accept connections until the listener is shut down."""
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._served, args=(connection,), daemon=True).start()

    def _served(self, connection: socket.socket) -> None:
        files: dict[Path, int] = {}
        pending = b""
        with connection, suppress(ConnectionError):
            while True:
                while _END not in pending:
                    if not (received := connection.recv(_HEAD_BYTES)):
                        break
                    pending += received
                else:
                    head, _, pending = pending.partition(_END)
                    self._answer(connection, head.decode("latin-1"), files)
                    continue
                break
        for descriptor in files.values():
            os.close(descriptor)

    def _answer(self, connection: socket.socket, head: str, files: dict[Path, int]) -> None:
        request, *lines = head.split("\r\n")
        method, target, _ = request.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        answer = self._found(target, headers)
        size = answer.size if answer.file else len(answer.body)
        first = [f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}", f"Content-Length: {size}"]
        head_lines = [*first, *(f"{name}: {value}" for name, value in answer.headers.items())]
        if target != COUNTS:
            kind = "LIST" if method == "GET" and answer.file is None else method
            self.counts.add(kind, 0 if method == "HEAD" else size)
        if self.network and target != COUNTS:
            time.sleep(self.network.wait_seconds)
        connection.sendall(
            "\r\n".join(head_lines).encode() + _END + (b"" if method == "HEAD" else answer.body)
        )
        if answer.file is None or method == "HEAD":
            return
        if answer.file not in files:
            files[answer.file] = os.open(answer.file, os.O_RDONLY)
        offset, left, began = answer.offset, size, time.monotonic()
        while left:
            most = min(left, _PACED_BYTES) if self.network else left
            sent = os.sendfile(connection.fileno(), files[answer.file], offset, most)
            offset, left = offset + sent, left - sent
            if self.network:
                self.network.paced(began, size - left)

    def _found(self, target: str, headers: Mapping[str, str]) -> Answer:
        if target == COUNTS:
            return Answer(200, {"Content-Type": "application/json"}, self.counts.taken())
        url = urlsplit(target)
        name, _, key = unquote(url.path).removeprefix("/").partition("/")
        if name not in self._buckets:
            if not (self.folder / name).is_dir():
                return _error(404, "NoSuchBucket")
            self._buckets[name] = Bucket(self.folder / name)
        bucket = self._buckets[name]
        return bucket.object(key, headers) if key else bucket.listed(parse_qs(url.query))


def main(folder: str, *network: str) -> None:
    wait, rate = (float(number) for number in network or ("0", "0"))
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(listener.getsockname()[1], flush=True)
    Server(
        Path(folder), network=Network(wait_seconds=wait / 1e3, bytes_a_second=rate * 1e6) if network else None
    ).serve(listener)


if __name__ == "__main__":
    main(*sys.argv[1:])
