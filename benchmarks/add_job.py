"""Measures what a user waits for: a warm ``POST /add-job`` beside few and many items, and the twin's start.

First what the api function itself spends on one (``posting.py``).

Two twins run side by side, one with few items in its table and one with many. A client of each, on a
kept-alive connection, submits to both in turn, so that both see the same machine. The pool is full: what is
submitted waits, and the scheduler looks at the queue all the while.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import boto3
from trainmaster_client.api import ApiClient
from trainmaster_client.report import Report

from benchmarks import posting
from benchmarks.crowd import Table, names, wait_until
from benchmarks.tables import at_most, milliseconds
from local.twin_process import TwinProcess, running_twin

ROOT = Path(__file__).resolve().parents[1]
FEW, MANY = 100, 20_000
WARM_UP, RUNS = 10, 100
MAX_MS = 30.0
MAX_RATIO = 2.0
"""Many items against few; a cost that does not depend on the size is 1."""
STARTS = 5
MAX_START_SECONDS = 3.0
INSTANCE_TYPE = "ml.m5.xlarge"
POLICY: dict[str, Any] = {"version": 1, "pools": [{"name": "bench", "capacity": {INSTANCE_TYPE: 1}}]}


class Bench:
    """A twin whose one instance is taken, with a chosen number of items in its table."""

    def __init__(self, twin: TwinProcess) -> None:
        keys = {
            "aws_access_key_id": twin.ready["access_key_id"],
            "aws_secret_access_key": twin.ready["secret_access_key"],
            "region_name": twin.ready["region"],
        }
        session = boto3.Session(**keys)
        self._ready = twin.ready
        self._api = ApiClient(twin.ready["api_url"], session)
        self.table = Table(session.client("dynamodb", endpoint_url=twin.ready["endpoint_url"]))
        self._names = names("measured")

    def prepare(self, items: int) -> None:
        """Submit a job that ends, one that runs for good, one that waits; copy the first and the last."""
        self.submit("ended-000000", "true")
        wait_until(lambda: self._state("ended-000000") == "completed")
        self.submit("running-000000", "sleep 100000")
        wait_until(lambda: self._state("running-000000") == "running")
        self.submit("waiting-000000", "true")
        wait_until(lambda: (self._api.job("waiting-000000")["waiting"] or {}).get("code") == "capacity")
        waiting, ended = self.table.model("waiting-000000"), self.table.model("ended-000000")
        self.table.fill(to=items, waiting=waiting, ended=ended)

    def measure(self) -> float:
        """Measure the seconds of one submission, signing included."""
        name = next(self._names)
        began = time.perf_counter()
        self.submit(name, "true")
        return round(time.perf_counter() - began, 6)

    def submit(self, name: str, command: str) -> None:
        self._api.add_job(request_to(self._ready, name, command))

    def _state(self, name: str) -> str:
        state: str = self._api.job(name)["state"]
        return state


def request_to(
    ready: Mapping[str, Any], name: str, command: str, changes: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a request that a twin takes for a training job that runs the command."""
    request = {
        "TrainingJobName": name,
        "RoleArn": ready["role_arn"],
        "AlgorithmSpecification": {
            "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": command.split(),
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{ready['bucket']}/output"},
        "ResourceConfig": {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 10},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "HyperParameters": {"epochs": "3", "learning_rate": "0.001"},
    }
    return {**request, **changes}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.add_job", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "add_job.json", metavar="PATH")
    arguments = parser.parse_args(argv)
    report = Report("add_job")
    report.facts["handler"] = posting.measure()
    report.facts["starts"] = [measure_start() for _ in range(STARTS)]
    report.facts["load_average"] = [os.getloadavg()[0]]
    report.facts["items"], report.facts["seconds"] = measure_submissions()
    report.facts["load_average"].append(os.getloadavg()[0])
    report.facts["milliseconds"] = {
        size: milliseconds(runs) for size, runs in report.facts["seconds"].items()
    }
    check(report)
    return report.finish(arguments.json)


def measure_start() -> dict[str, float]:
    """Measure seconds from the command to the ready file, and CPU time of all processes to the end."""
    with TemporaryDirectory() as name:
        ready = Path(name) / "ready.json"
        command = [sys.executable, "-m", "local", "up", "--port", "0", "--ready", str(ready)]
        before, began = _cpu_of_children(), time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        try:
            wait_until(ready.exists)
            seconds = time.perf_counter() - began
        finally:
            process.terminate()
            process.wait()
        return {"seconds": round(seconds, 3), "cpu_seconds": round(_cpu_of_children() - before, 3)}


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_submissions() -> tuple[dict[int, list[int]], dict[int, list[float]]]:
    """Return by size the items the table held before and after, and the seconds of each submission."""
    with ExitStack() as stack:
        benches = {size: Bench(_twin(stack)) for size in (FEW, MANY)}
        for size, bench in benches.items():
            bench.prepare(size)
        items = {size: [len(bench.table.items())] for size, bench in benches.items()}
        seconds: dict[int, list[float]] = {size: [] for size in benches}
        for run in range(WARM_UP + RUNS):
            for size, bench in benches.items():
                spent = bench.measure()
                if run >= WARM_UP:
                    seconds[size].append(spent)
        for size, bench in benches.items():
            items[size].append(len(bench.table.items()))
        return items, seconds


def _twin(stack: ExitStack) -> TwinProcess:
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="trainmaster-bench-")))
    return stack.enter_context(running_twin(folder, policy=POLICY))


def check(report: Report) -> None:
    facts: Mapping[str, Any] = report.facts
    _check_handler(facts["handler"], report)
    few, many = facts["milliseconds"][FEW], facts["milliseconds"][MANY]
    for size, found in ((FEW, few), (MANY, many)):
        at_most(report, f"p50-{size}-items", found["p50"], MAX_MS, "ms")
    ratio = round(many["p50"] / few["p50"], 2)
    at_most(report, "flat", ratio, MAX_RATIO)
    started = median(start["seconds"] for start in facts["starts"])
    at_most(report, "start", started, MAX_START_SECONDS, "s")
    for size, found in ((FEW, few), (MANY, many)):
        print(f"{size:6,} items: p50 {found['p50']} ms, p95 {found['p95']} ms, best {found['best']} ms")
    cpu = median(start["cpu_seconds"] for start in facts["starts"])
    print(
        f"start: {started} s, of which {cpu} s of CPU in all processes; load average {facts['load_average']}"
    )


def _check_handler(handler: Mapping[str, Any], report: Report) -> None:
    spent, calls = handler["best_handler_cpu_ms"], sum(handler["calls"].values())
    at_most(report, "handler-cpu", spent, posting.MAX_MS, "ms")
    at_most(report, "handler-calls", calls, posting.MAX_CALLS)
    print(f"handler: {spent} ms of CPU, the best of {handler['handler_cpu_ms']}; calls {handler['calls']}")


if __name__ == "__main__":
    sys.exit(main())
