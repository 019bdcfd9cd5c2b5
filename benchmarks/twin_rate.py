"""Submissions a second at the twin with many clients, and where the time goes.

The twin runs with a thread that looks at all others every few milliseconds and notes whose code they are in;
the CPU time of both sides is counted. Client and twin share this machine.
"""

import json
import os
import sys
import threading
import time
from argparse import Namespace
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import boto3
from trainmaster_client.api import ApiClient

from benchmarks.add_job import POLICY, request_to
from local import up
from local.twin_process import TwinProcess, running_twin

CLIENTS, SUBMISSIONS, WARM_UP = 20, 300, 20
REACHED_FOR = 20
INTERVAL_S = 0.01
PROFILE = "TRAINMASTER_TWIN_PROFILE"
PROGRAM = (sys.executable, "-m", "benchmarks.twin_rate")
"""Program that takes the place of ``python -m local up``."""
OURS = ("/local/", "/trainmaster/", "/botocore/", "/moto/", "/urllib3/")
"""Parts of paths: a thread counts for the innermost of these in its stack."""
MOST_PLACES = 12
_IDLE = frozenset(
    {
        "wait",
        "select",
        "accept",
        "poll",
        "readinto",
        "_recv_into",
        "get",
        "acquire",
        "sleep",
        "_try_wait",
        "_read",
        "_worker",
    }
)


def measure_rate(*, clients: int = CLIENTS, submissions: int = SUBMISSIONS) -> dict[str, Any]:
    policy = {**POLICY, "pools": [{**POLICY["pools"][0], "limits": {"max_submissions_per_minute": 100_000}}]}
    with TemporaryDirectory(prefix="trainmaster-rate-") as name:
        profile = Path(name) / "profile.json"
        os.environ[PROFILE] = str(profile)
        with running_twin(Path(name), policy=policy, program=PROGRAM) as twin:
            apis = [_api(twin) for _ in range(clients)]
            _submit_all(twin, apis, WARM_UP, prefix="warm")
            own, began = time.process_time(), time.monotonic()
            _submit_all(twin, apis, submissions, prefix="rated")
            own, ended = time.process_time() - own, time.monotonic()
        looks = json.loads(profile.read_text(encoding="utf-8"))
    meanwhile = [look for look in looks if began <= look[0] <= ended]
    spent = {"clients": own, "twin": meanwhile[-1][1] - meanwhile[0][1]}
    counts = Counter(place for _, _, places in meanwhile for place in places)
    return {
        "clients": clients,
        "submissions": submissions,
        "a_second": round(submissions / (ended - began), 1),
        "cpu_ms_of_a_submission": {who: round(1000 * cpu / submissions, 1) for who, cpu in spent.items()},
        "share_of_twin_by_place": {
            place: round(n / counts.total(), 3) for place, n in counts.most_common(MOST_PLACES)
        },
        "load_average": os.getloadavg()[0],
    }


def _api(twin: TwinProcess) -> ApiClient:
    ready = twin.ready
    session = boto3.Session(ready["access_key_id"], ready["secret_access_key"], region_name=ready["region"])
    return ApiClient(ready["api_url"], session)


def _submit_all(twin: TwinProcess, apis: list[ApiClient], count: int, *, prefix: str) -> None:
    def submit(number: int) -> None:
        body = request_to(twin.ready, f"{prefix}-{number:06d}", "sleep 100000")
        apis[number % len(apis)].add_job(body)

    with ThreadPoolExecutor(len(apis)) as threads:
        list(threads.map(submit, range(count)))


# ---- inside the twin


@dataclass(slots=True)
class _Sampler:
    """Notes again and again what all other threads are at, and what the process has spent."""

    looks: list[tuple[float, float, list[str]]] = field(default_factory=list)
    """(instant, CPU seconds, place of each thread that does not wait)"""
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        own = threading.get_ident()
        while not self._stop.wait(INTERVAL_S):
            frames = sys._current_frames()  # noqa: SLF001  there is no other way to look
            places = [_place(frame) for ident, frame in frames.items() if ident != own]
            self.looks.append(
                (
                    time.monotonic(),
                    time.process_time(),
                    [place_of_thread for place_of_thread in places if place_of_thread is not None],
                )
            )

    def write(self, path: Path) -> None:
        self._stop.set()
        path.write_text(json.dumps(self.looks), encoding="utf-8")


def _place(frame: FrameType | None) -> str | None:
    """Return ``file:function``; None if the thread waits for something other than a lock."""
    if frame is None or frame.f_code.co_name in _IDLE:
        return None
    while frame is not None:
        file = frame.f_code.co_filename
        if any(part in file for part in OURS):
            return f"{'/'.join(Path(file).parts[-2:])}:{frame.f_code.co_name}"
        frame = frame.f_back
    return "else"


def main() -> int:
    """Run ``python -m local up`` with its own options, and sample its threads."""
    path, run = Path(os.environ.pop(PROFILE)), up._run  # noqa: SLF001  what its process does after the fork

    def sampled(arguments: Namespace, reaper: int) -> int:
        sampler = _Sampler()
        threading.Thread(target=sampler.run, daemon=True).start()
        try:
            return run(arguments, reaper)
        finally:
            sampler.write(path)

    up._run = sampled  # noqa: SLF001  likewise
    return up.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
