"""AWS in a process of its own: the twin's table over HTTP, and a SageMaker that takes whatever it is sent.

What it spends is another machine's: who measures the control plane counts its own process alone.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from urllib.request import Request as Call
from urllib.request import urlopen

from local.clock import TwinClock
from local.engine.calls import AwsCall
from local.engine.client import answered
from local.engine.moto_engine import MotoEngine
from local.http_server import HttpServer
from local.wire import Request, Response

ROOT = Path(__file__).resolve().parents[1]
CONTROL = "/stand-in"
"""Path below which the one who measures sets the delay and reads the counts."""
ARN = "arn:aws:sagemaker:us-east-1:111122223333:training-job/"


class _Answers:
    def __init__(self) -> None:
        self._engine = MotoEngine(clock=TwinClock(manual=False))
        self._delay = 0.0
        self._counts: dict[str, int] = {}
        self._lock = Lock()

    def answer(self, request: Request) -> Response:
        if request.raw_path == CONTROL:
            return self._controlled(request)
        if self._delay:
            time.sleep(
                self._delay
            )  # AWS takes its time; this process stands for it, and no test waits for it
        return answered(request, self._serve)

    def _controlled(self, request: Request) -> Response:
        """Return the counts so far, which begin again."""
        self._delay = json.loads(request.body)["delay_ms"] / 1000
        with self._lock:
            counts, self._counts = self._counts, {}
        return _json(counts)

    def _serve(self, call: AwsCall, request: Request) -> Response:
        with self._lock:
            self._counts[call.operation] = self._counts.get(call.operation, 0) + 1
        if call.operation == "CreateTrainingJob":
            return _json({"TrainingJobArn": ARN + call.params["TrainingJobName"]})
        if call.operation == "PutEvents":
            return _json({"FailedEntryCount": 0, "Entries": []})
        return self._engine.call(call, request)


def _json(body: Mapping[str, object]) -> Response:
    headers = {"Content-Type": "application/x-amz-json-1.1", "x-amzn-RequestId": "0" * 32}
    return Response(status=200, body=json.dumps(body).encode(), headers=headers)


@dataclass(frozen=True, slots=True)
class StandIn:
    endpoint_url: str

    def counts(self, *, delay_ms: int = 0) -> dict[str, int]:
        """Return calls by operation since the last count; answers are delayed by ``delay_ms`` from now on."""
        body = json.dumps({"delay_ms": delay_ms}).encode()
        with urlopen(Call(self.endpoint_url + CONTROL, body, method="POST")) as answer:
            counted: dict[str, int] = json.load(answer)
        return counted


@contextmanager
def stand_in() -> Iterator[StandIn]:
    command = [sys.executable, "-m", "benchmarks.stand_in"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield StandIn(process.stdout.readline().strip())
        finally:
            process.terminate()


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.stand_in", description=__doc__).parse_args()
    server = HttpServer(0, _Answers().answer)
    server.start()
    print(f"http://127.0.0.1:{server.port}", flush=True)
    Event().wait()


if __name__ == "__main__":
    main()
