"""Rounds of measurements: in each round every reader has its turn, in a fresh process."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from benchmarks.data_from_s3.files import LARGE, Files
from benchmarks.data_from_s3.server import COUNTS
from benchmarks.data_from_s3.worker import BATCH, READY, SEQUENCE_BYTES

FIRST, RESUME, CHECKED, DELIVERED, OBJECTS, SHARDS = (
    "first-batch",
    "resume",
    "large-checked",
    "large",
    "small-objects",
    "small-in-shards",
)
_RAW_BYTES = 8 * 2**20
_KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of the files."""

    bucket: str
    folder: Path
    files: Files
    endpoint: str | None
    """URL of our server; None means S3 itself."""

    @property
    def region(self) -> str:
        """Return the region; empty if none is set: mounted files need none."""
        if self.endpoint:
            return _KEYS["AWS_REGION"]
        return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""

    @property
    def env(self) -> dict[str, str]:
        if self.endpoint is None:
            return dict(os.environ)
        return os.environ | _KEYS | {"AWS_ENDPOINT_URL_S3": self.endpoint}

    def counts(self) -> dict[str, Any]:
        """Return what the server has served since the last call; empty if it is S3 itself."""
        if self.endpoint is None:
            return {}
        with urlopen(self.endpoint + COUNTS) as answer:
            served: dict[str, Any] = json.loads(answer.read())
        return served


def resume_step(files: Files) -> int:
    """Return the step after half of the corpus was trained."""
    return files.amount.large_bytes // (2 * BATCH * SEQUENCE_BYTES) + 1


@contextmanager
def served(folder: Path, *network: float) -> Iterator[str]:
    """Serve the folder, whose folders are buckets; yield the endpoint.

    Args:
        folder: Folder of the buckets.
        network: Milliseconds before each answer, and MB a second of a connection; nothing: no network.
    """
    command = [sys.executable, "-m", "benchmarks.data_from_s3.server", str(folder), *map(str, network)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.terminate()


def questions_of(files: Files) -> dict[str, dict[str, Any]]:
    """Return the cases of a round. A process's first one finds it as a job does at its start."""
    return {
        FIRST: {"case": "batch", "step": 1},
        RESUME: {"case": "batch", "step": resume_step(files)},
        CHECKED: {"case": "large", "checked": True},
        DELIVERED: {"case": "large"},
        OBJECTS: {"case": "objects"},
        SHARDS: {"case": "samples"},
    }


def measured(
    place: Place, names: Sequence[str], questions: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Measure one round, by reader and case."""
    measurements: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in names}
    with _workers(place, names) as workers:
        for case, question in questions.items():
            for name in names:
                place.counts()
                answer = workers[name].answer(question)
                measurements[name][case] = answer | {"served": place.counts()}
    return measurements


@dataclass(frozen=True, slots=True)
class _Worker:
    process: "subprocess.Popen[str]"

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    def line(self) -> str:
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise SystemExit(f"{self.process.args!r} ended; it says above why")
        return line.strip()


@contextmanager
def _workers(place: Place, names: Sequence[str]) -> Iterator[dict[str, _Worker]]:
    workers: dict[str, _Worker] = {}
    try:
        for name in names:
            workers[name] = _Worker(_started(place, name))
            assert workers[name].line() == READY
        yield workers
    finally:
        for worker in workers.values():
            assert worker.process.stdin is not None
            worker.process.stdin.close()
            worker.process.wait()
            assert worker.process.stdout is not None
            worker.process.stdout.close()


def _started(place: Place, name: str) -> "subprocess.Popen[str]":
    arguments = [name, place.bucket, str(place.folder), place.region, place.endpoint or ""]
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.data_from_s3.worker", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=place.env,
    )


def ceiling(place: Place) -> dict[str, float]:
    """Measure what a loop over one socket gets of our server without reading the bytes, in MB a second."""
    assert place.endpoint is not None
    host, _, port = place.endpoint.removeprefix("http://").partition(":")
    buffer = memoryview(bytearray(_RAW_BYTES))
    wall, cpu, size = time.perf_counter(), time.process_time(), 0
    with socket.create_connection((host, int(port))) as connection:
        for name in place.files.large:
            for offset in range(0, place.files.amount.shard_bytes, _RAW_BYTES):
                size += _raw(connection, f"/{place.bucket}/{LARGE}/{name}", offset, buffer)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"mb_per_second": size / 1e6 / wall, "mb_per_cpu_second": size / 1e6 / cpu}


def _raw(connection: socket.socket, target: str, offset: int, buffer: memoryview) -> int:
    byte_range = f"bytes={offset}-{offset + len(buffer) - 1}"
    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nRange: {byte_range}\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1024)
    header, _, body = head.partition(b"\r\n\r\n")
    size = int(header.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    left = size - len(body)
    while left:
        left -= connection.recv_into(buffer[:left])
    return size
