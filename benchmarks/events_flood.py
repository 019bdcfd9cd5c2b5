"""Measures what a flood of events costs a follower: memory and time of ``trainmaster events --follow``.

A stand-in for the API has so many events, half of them spread over half an hour, half in one instant, and
gives them in pages of the API's size as fast as they are taken. The command is a process of its own.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

from trainmaster_client.report import Report

EVENTS = 1_800_000
PAGE = 1000
"""Events that ``GET /events`` looks at for one answer."""
SPREAD = timedelta(minutes=30)
MAX_PEAK_MB = 300
_PATIENCE_SECONDS = 3600.0
_STOP_SECONDS = 15.0
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_FOLLOW = (sys.executable, "-c", "from trainmaster_client.cli import main; main()", "events", "--follow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """Events by number, the oldest first; none is kept."""

    count: int
    begin: datetime

    def at(self, number: int) -> datetime:
        return self.begin + SPREAD * min(1.0, 2 * number / self.count)

    def event(self, number: int) -> dict[str, Any]:
        job = f"fine-tune-{number:09d}"
        what = f"{job} was preempted after 41 minutes of training."
        why = "urgent-eval of team language has priority 9."
        detail = {"version": "1", "id": f"{number:032x}", "what": what, "why": why, "lost_seconds": 140}
        at = self.at(number).isoformat(timespec="milliseconds")
        return {"at": at, "kind": "Job Preempted", "team": "vision", "job": job, "detail": detail}

    def page(self, since: datetime, token: str | None) -> dict[str, Any]:
        first = int(token) if token else bisect_left(range(self.count), since, key=self.at)
        end = min(first + PAGE, self.count)
        next_token = str(end) if end < self.count else None
        return {"events": [self.event(number) for number in range(first, end)], "next_token": next_token}


@dataclass(slots=True, kw_only=True)
class Journal:
    """The stand-in's answers, and whether all were taken."""

    flood: Flood
    taken: threading.Event = field(default_factory=threading.Event)
    """Asked again after the last page: what was on it has been shown."""
    _is_at_end: bool = False

    def answer(self, query: Mapping[str, list[str]]) -> bytes:
        token = query.get("next_token", [None])[0]
        if self._is_at_end and token is None:
            self.taken.set()
        page = self.flood.page(datetime.fromisoformat(query["since"][0]), token)
        self._is_at_end = self._is_at_end or page["next_token"] is None
        return json.dumps(page).encode()


class Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore the error: the command was ended while it was answered."""
        del request, client_address


def server_of(journal: Journal) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = journal.answer(parse_qs(urlsplit(self.path).query))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the standard library's name
            del format, args

    return Server(("127.0.0.1", 0), Handler)


@dataclass(slots=True)
class Shown:
    """Lines that the command printed, and when the last one came."""

    lines: int = 0
    last_at: float = 0.0

    def count(self, stream: IO[bytes]) -> None:
        for _ in stream:
            self.lines += 1
            self.last_at = time.monotonic()


def followed(flood: Flood) -> dict[str, Any]:
    """Follow a flood and return facts of a report."""
    journal = Journal(flood=flood)
    server = server_of(journal)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    began = time.monotonic()
    since = ("--since", flood.begin.isoformat())
    with subprocess.Popen([*_FOLLOW, *since], stdout=subprocess.PIPE, env=_environment(server)) as process:
        assert process.stdout is not None
        shown = Shown()
        reader = threading.Thread(target=shown.count, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            _await(journal, process)
            peak = _peak_mb(process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(_STOP_SECONDS)
            server.shutdown()
        reader.join()
    seconds = shown.last_at - began
    rate = round(shown.lines / seconds)
    return {"shown": shown.lines, "seconds": round(seconds, 1), "events_per_second": rate, "peak_mb": peak}


def _await(journal: Journal, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not journal.taken.wait(1.0):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the command ended early, or is too slow: exit status {process.returncode}")


def _peak_mb(pid: int) -> int:
    """Return the largest resident memory in MB, as Linux counts it."""
    match = _PEAK.search(Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    assert match is not None
    return int(match[1]) // 1024


def _environment(server: ThreadingHTTPServer) -> dict[str, str]:
    """Return variables with made-up credentials only."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")} | {
        "AWS_ACCESS_KEY_ID": "made-up",
        "AWS_SECRET_ACCESS_KEY": "made-up",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TRAINMASTER_API_URL": f"http://127.0.0.1:{server.server_port}/prod",
    }


def check(report: Report, *, events: int) -> None:
    report.check("each-shown-once", expected=events, actual=report.facts["shown"])
    peak = report.facts["peak_mb"]
    report.check("peak_mb", expected=f"<= {MAX_PEAK_MB}", actual=peak, ok=peak <= MAX_PEAK_MB)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events_flood", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--json", type=Path, default=Path("build/events-flood.json"))
    arguments = parser.parse_args()
    report = Report("events-flood")
    begin = (datetime.now(UTC) - 2 * SPREAD).replace(microsecond=0)
    report.facts = {"events": arguments.events} | followed(Flood(count=arguments.events, begin=begin))
    print(", ".join(f"{name} {value:,}" for name, value in report.facts.items()))
    check(report, events=arguments.events)
    return report.finish(arguments.json)


if __name__ == "__main__":
    sys.exit(main())
