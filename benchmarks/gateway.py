"""Measures what a program waits for at the local gateway: boto3 calls, 200 at once, and its memory.

The queue's API and SageMaker are a server of their own beside it that answers at once: what is measured is
the gateway, the client and two hops over loopback.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import boto3
import uvicorn
from botocore.config import Config
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from trainmaster_client.gateway.gateway_files import status
from trainmaster_client.gateway.gateway_server import listening_on
from trainmaster_client.report import Report

from benchmarks.tables import milliseconds

ROOT = Path(__file__).resolve().parents[1]
WARM_UP, RUNS = 20, 200
AT_ONCE = 200
MAX_P50_MS = 20.0
MAX_MB = 120.0
START_SECONDS = 60.0
REGION = "eu-west-1"
REQUEST: dict[str, Any] = {
    "TrainingJobName": "waits",
    "RoleArn": "arn:aws:iam::123456789012:role/training",
    "AlgorithmSpecification": {"TrainingImage": "image:1", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
    "ResourceConfig": {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
}
DESCRIBE = {"content-type": "application/x-amz-json-1.1", "x-amz-target": "SageMaker.DescribeTrainingJob"}


async def _job(request: Request) -> JSONResponse:
    view = {"name": request.path_params["name"], "state": "pending", "submitted_at": "2026-11-21T01:00:00Z"}
    return JSONResponse({**view, "team": "vision", "pool": "cpu", "position": 3, "request": REQUEST})


async def _submitted(request: Request) -> JSONResponse:
    name = json.loads(await request.body())["TrainingJobName"]
    view = {"name": name, "state": "pending", "submitted_at": "2026-11-21T01:00:00Z"}
    return JSONResponse({"job": view, "warnings": []}, status_code=201)


async def _passed_on(_: Request) -> JSONResponse:
    return JSONResponse({"Models": []})


def stand_in() -> None:
    """Serve the API and SageMaker; print the port."""
    routes = [
        Route("/prod/jobs/{name}", _job),
        Route("/prod/add-job", _submitted, methods=["POST"]),
        Route("/", _passed_on, methods=["POST"]),
    ]
    with listening_on(0) as listening:
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(Starlette(routes=routes), log_config=None, access_log=False, lifespan="off")
        uvicorn.Server(config).run(sockets=[listening])


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gateway", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "gateway.json", metavar="PATH")
    parser.add_argument("--stand-in", action="store_true", help="serve what is behind the gateway")
    arguments = parser.parse_args(argv)
    if arguments.stand_in:
        stand_in()
        return 0
    report = Report("gateway")
    report.facts["load_average"] = [os.getloadavg()[0]]
    with TemporaryDirectory() as folder, running_gateway(Path(folder)) as url:
        report.facts["milliseconds"] = {name: measured(call) for name, call in calls(url).items()}
        report.facts["at_once"] = at_once(url)
        report.facts["status"] = status(url)
    report.facts["load_average"].append(os.getloadavg()[0])
    check(report)
    return report.finish(arguments.json)


@contextmanager
def running_gateway(folder: Path) -> Iterator[str]:
    """Run a gateway as its user does, before the stand-in; yield its URL."""
    with _process([sys.executable, "-m", "benchmarks.gateway", "--stand-in"], dict(os.environ)) as behind:
        assert behind.stdout is not None
        base = f"http://127.0.0.1:{behind.stdout.readline().strip()}"
        env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        env |= {
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": base,
        }
        env |= {"AWS_DEFAULT_REGION": REGION, "TRAINMASTER_API_URL": f"{base}/prod"}
        env["XDG_STATE_HOME"] = str(folder)
        ready = folder / "ready.json"
        program = "import sys; from trainmaster_client.cli import main; main()"
        command = [sys.executable, "-c", program, "gateway", "--port", "0", "--ready", str(ready)]
        with _process(command, env):
            _wait_until(ready.exists)
            yield json.loads(ready.read_text(encoding="utf-8"))["endpoint_url"]


@contextmanager
def _process(command: list[str], env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def _wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "the gateway does not start"
        time.sleep(0.02)


def calls(url: str) -> dict[str, Callable[[], Any]]:
    """Return calls of boto3 to measure; a waiting job is described, or one new to the gateway."""
    client: Any = boto3.client(
        "sagemaker",
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id="AKIAOFANOTHER",
        aws_secret_access_key="any",  # noqa: S106  not looked at
        config=Config(retries={"total_max_attempts": 1}),
    )
    numbers = iter(range(10 * RUNS))
    return {
        "create": lambda: client.create_training_job(
            **{**REQUEST, "TrainingJobName": f"new-{next(numbers)}"}
        ),
        "describe": lambda: client.describe_training_job(TrainingJobName="waits"),
        "describe-first": lambda: client.describe_training_job(TrainingJobName=f"job-{next(numbers)}"),
        "passed-on": client.list_models,
    }


def measured(call: Callable[[], Any]) -> dict[str, float]:
    for _ in range(WARM_UP):
        call()
    seconds = []
    for _ in range(RUNS):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    figures = milliseconds(seconds)
    return {name: figures[name] for name in ("p50", "p95")}


def at_once(url: str) -> dict[str, Any]:
    """Describe jobs at once, each on a connection of its own and of another job."""
    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        statuses = list(pool.map(lambda number: _described(url, f"crowd-{number}"), range(AT_ONCE)))
    return {
        "calls": AT_ONCE,
        "errors": sum(status != http.HTTPStatus.OK for status in statuses),
        "seconds": round(time.perf_counter() - began, 3),
    }


def _described(url: str, name: str) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    try:
        connection.request("POST", f"{parts.path}/", json.dumps({"TrainingJobName": name}), DESCRIBE)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def check(report: Report) -> None:
    for name, found in report.facts["milliseconds"].items():
        report.check(
            f"{name}-p50-ms", expected=f"<= {MAX_P50_MS}", actual=found["p50"], ok=found["p50"] <= MAX_P50_MS
        )
    report.check("errors-of-200-at-once", expected=0, actual=report.facts["at_once"]["errors"])
    memory = report.facts["status"]["memory_mb"]
    report.check("memory-mb", expected=f"<= {MAX_MB}", actual=memory, ok=memory <= MAX_MB)


if __name__ == "__main__":
    sys.exit(main())
