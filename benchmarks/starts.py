"""How many starts a CPU second of a whole pass makes: snapshot, plan, claims, Creates, records, messages.

AWS is another process (``stand_in.py``), reached by the real clients; what counts is the CPU time of this
process from the beginning of ``Scheduler.run`` to its end. A pass over a pool with room for every job; then
one over a full pool where all who wait get their reason for the first time.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import boto3
from botocore.config import Config
from trainmaster.adapters.client_settings import QUICK
from trainmaster.bootstrap import Wiring
from trainmaster.core.jobs.instances import Capacity, Shape
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.policy import parse_policy
from trainmaster.services.deadline import Deadline
from trainmaster.settings import Settings
from trainmaster_client.report import Report

from benchmarks.deep_queue import make_table
from benchmarks.stand_in import StandIn, stand_in
from benchmarks.tables import at_least, at_most

ROOT = Path(__file__).resolve().parents[1]
INSTANCE_TYPE = "ml.g5.12xlarge"
TEAMS = tuple(f"team-{number}" for number in range(8))
WIDTHS = (1, 2, 3, 4)
STARTS = {0: 256, 20: 256, 300: 32}
"""Jobs that one pass starts, by the milliseconds that AWS takes for each answer."""
PASSES = 3
WAITING = 256
MIN_STARTS_PER_CPU_S = 300
MAX_CALLS_BEYOND_STARTS = 100
STARTS_A_MINUTE = 60
"""Starts that an account is given in a minute, as SageMaker was observed to allow."""
MIN_LEAN_GAIN = 1.5
"""Below this ratio of CPU time the lean client would go (ADR 36)."""
TIME_LIMIT = timedelta(minutes=10)
BODY: dict[str, Any] = {
    "RoleArn": "arn:aws:iam::111122223333:role/training",
    "AlgorithmSpecification": {
        "TrainingImage": "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312",
        "TrainingInputMode": "File",
        "ContainerEntrypoint": ["python", "-m", "train"],
    },
    "OutputDataConfig": {"S3OutputPath": "s3://vision-output/runs"},
    "CheckpointConfig": {"S3Uri": "s3://vision-checkpoints/runs"},
    "StoppingCondition": {"MaxRuntimeInSeconds": 43_200},
    "HyperParameters": {f"parameter-{number}": f"{number}.5e-4" for number in range(10)},
    "Environment": {"EXPERIMENT": "imagenet", "SEED": "0"},
    "Tags": [{"Key": "project", "Value": "vision"}],
}


class BotocoreWiring(Wiring):
    """The plane with botocore's own clients, which do not validate parameters, in the place of lean ones."""

    def _lean(self, service: str, *, config: Config = QUICK, **_: Any) -> Any:
        return self._client(service, config=config.merge(Config(parameter_validation=False)))


class Bench:
    """A control plane whose AWS is a stand-in, with one pool after the other."""

    def __init__(self, aws: StandIn, *, wiring: type[Wiring] = Wiring) -> None:
        self.aws = aws
        os.environ.update(environment_of(aws.endpoint_url))
        self._wiring = wiring(Settings.from_env(os.environ))
        self._numbers = count()
        make_table(boto3.client("dynamodb"), "trainmaster")

    def starts(self, jobs: int, *, delay_ms: int) -> dict[str, Any]:
        """Measure one pass that starts so many jobs."""
        return self._measured(jobs, capacity=jobs * max(WIDTHS), delay_ms=delay_ms)

    def first_pass(self, jobs: int) -> dict[str, Any]:
        """Measure one pass over a full pool: no job starts, and none has a reason yet."""
        return self._measured(jobs, capacity=0, delay_ms=0)

    def _measured(self, jobs: int, *, capacity: int, delay_ms: int) -> dict[str, Any]:
        pool = f"pool-{next(self._numbers)}"
        self._fill(pool, jobs, capacity)
        self.aws.counts(delay_ms=delay_ms)
        deadline = Deadline.at(datetime.now(UTC) + TIME_LIMIT, partial(datetime.now, UTC))
        gc.collect()
        wall, began = time.perf_counter(), time.process_time()
        summary = self._wiring.scheduler.run(pool, deadline=deadline)
        cpu, wall = time.process_time() - began, time.perf_counter() - wall
        calls = self.aws.counts()
        assert not summary.failures, summary.failures
        starts = calls.get("CreateTrainingJob", 0)
        return {
            "jobs": jobs,
            "starts": starts,
            "delay_ms": delay_ms,
            "cpu_s": round(cpu, 4),
            "wall_s": round(wall, 3),
            "starts_per_cpu_s": round(starts / cpu, 1),
            "looks": summary.looks,
            "calls": calls,
        }

    def _fill(self, pool: str, jobs: int, capacity: int) -> None:
        """Fill the pool with jobs of 32 lanes, all submitted through the store."""
        document = {"version": 1, "pools": [{"name": pool, "capacity": {INSTANCE_TYPE: capacity or 1}}]}
        policies, store = self._wiring.policies, self._wiring.store
        policies.put(document, pools=[pool], replaces=policies.current())
        rules = parse_policy(document).pools[0]
        now = datetime.now(UTC)
        for number in range(jobs):
            name = f"{pool}-job-{number:05d}-fine-tune-resnet-50"
            width = WIDTHS[number // len(TEAMS) % len(WIDTHS)] + (0 if capacity else 1)
            entered = now - timedelta(seconds=jobs - number)
            spec = JobSpec(
                name=name,
                entry_id=f"01{pool[-4:]:0>8}{number:016d}"[:26],
                team=TEAMS[number % len(TEAMS)],
                pool=pool,
                submitted_by="arn:aws:iam::111122223333:role/vision-research",
                submitted_at=entered,
                shapes=(Shape(vector={Capacity(INSTANCE_TYPE): width}),),
                preemptible=True,
                max_runtime=timedelta(hours=12),
                max_wait=None,
                body_hash="0" * 64,
                checkpoint_uri="s3://vision-checkpoints/runs",
            )
            score = int(entered.timestamp() * 1000) - rules.boost_ms(0)
            job = Job(spec=spec, state=JobState.PENDING, priority=0, score=score, ranked_by=rules.order_key)
            store.submit(job, json.dumps(_body(name, width)).encode())
        store.ranked(pool, rules.order_key)


def _body(name: str, width: int) -> dict[str, Any]:
    resources = {"InstanceType": INSTANCE_TYPE, "InstanceCount": width, "VolumeSizeInGB": 100}
    return {"TrainingJobName": name, **BODY, "ResourceConfig": resources}


def environment_of(endpoint_url: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_ACCESS_KEY_ID": "AKIASTANDIN000000000",
        "AWS_SECRET_ACCESS_KEY": "not-a-secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "TRAINMASTER_ADMIN_PRINCIPAL_ARNS": "",
        "TRAINMASTER_TABLE": "trainmaster",
        "TRAINMASTER_DOORBELL_URL": f"{endpoint_url}/111122223333/wake-ups",
        "TRAINMASTER_STACK": "benchmark",
        "TRAINMASTER_ACCOUNT_ID": "111122223333",
        "TRAINMASTER_RETENTION_DAYS": "90",
        "TRAINMASTER_ALARM_TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:alarms",
        "TRAINMASTER_MAIL_TOPIC_ARN": "arn:aws:sns:us-east-1:111122223333:mail",
        "TRAINMASTER_WIDGET_SHOWS_NAMES": "false",
    }


def measure(*, starts: dict[int, int] | None = None, waiting: int = WAITING) -> dict[str, Any]:
    """Return facts of a report: passes by AWS's delay, and the first pass after a change."""
    with stand_in() as aws:
        bench = Bench(aws)
        bench.starts(32, delay_ms=0)  # clients are made, modules loaded
        passes = [
            bench.starts(jobs, delay_ms=delay_ms)
            for delay_ms, jobs in (starts or STARTS).items()
            for _ in range(PASSES)
        ]
        return {"starting_passes": passes, "first_pass": bench.first_pass(waiting)}


def compare_clients() -> list[dict[str, Any]]:
    """Start as many jobs in a pass as SageMaker takes in a minute, with either client in turn.

    Returns:
        The CPU seconds of each client's passes, by AWS's delay, and the ratio of their medians.
    """
    kinds: dict[str, type[Wiring]] = {"lean": Wiring, "botocore": BotocoreWiring}
    rows: list[dict[str, Any]] = []
    for delay_ms in (0, 20):
        cpu_s: dict[str, list[float]] = {kind: [] for kind in kinds}
        for kind, wiring in [*kinds.items()] * PASSES:
            with stand_in() as aws:
                bench = Bench(aws, wiring=wiring)
                bench.starts(32, delay_ms=0)
                cpu_s[kind].append(bench.starts(STARTS_A_MINUTE, delay_ms=delay_ms)["cpu_s"])
        ratio = median(cpu_s["botocore"]) / median(cpu_s["lean"])
        rows.append({"delay_ms": delay_ms, "starts": STARTS_A_MINUTE, "ratio": round(ratio, 2), **cpu_s})
    return rows


def starts_per_cpu_s(passes: Sequence[dict[str, Any]]) -> dict[int, float]:
    """Return the median rate by delay."""
    rates: dict[int, list[float]] = {}
    for start_pass in passes:
        rates.setdefault(start_pass["delay_ms"], []).append(start_pass["starts_per_cpu_s"])
    return {delay_ms: median(found) for delay_ms, found in rates.items()}


def check(report: Report) -> None:
    facts = report.facts
    for delay_ms, rate in starts_per_cpu_s(facts["starting_passes"]).items():
        at_least(report, f"starts-per-cpu-second-at-{delay_ms}-ms", rate, MIN_STARTS_PER_CPU_S)
    calls = sum(facts["first_pass"]["calls"].values())
    at_most(report, "calls-of-the-first-pass", calls, MAX_CALLS_BEYOND_STARTS)
    for row in (*facts["starting_passes"], facts["first_pass"]):
        print(
            f"{row['delay_ms']:3} ms: {row['starts']} starts of {row['jobs']} jobs in {row['cpu_s']} CPU s"
            f" ({row['starts_per_cpu_s']} a CPU second, {row['wall_s']} s), {row['looks']} looks,"
            f" {sum(row['calls'].values())} calls: {row['calls']}"
        )


def check_clients(report: Report) -> None:
    for row in report.facts["clients"]:
        print(
            f"{row['delay_ms']:3} ms: {row['starts']} starts with botocore {row['botocore']} CPU s,"
            f" with the lean client {row['lean']}: {row['ratio']} times"
        )
        at_least(report, f"botocore-to-lean-at-{row['delay_ms']}-ms", row["ratio"], MIN_LEAN_GAIN)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.starts", description=__doc__)
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "starts.json", metavar="PATH")
    arguments = parser.parse_args(argv)
    report = Report("starts")
    report.facts |= measure()
    report.facts["clients"] = compare_clients()
    check(report)
    check_clients(report)
    return report.finish(arguments.json)


if __name__ == "__main__":
    sys.exit(main())
