"""A training twin by itself: S3, logs and events in memory, and a client that speaks for its caller."""

import io
import json
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from local.clock import TwinClock
from local.journal import Journal
from local.sagemaker import SageMakerTwin
from local.sagemaker.container import Outside
from local.sagemaker.loads import Sample
from local.sagemaker.ports import LogLine
from local.wire import Principal
from local.world_in_force import WorldInForce

ACCOUNT = "123456789012"
REGION = "us-east-1"
BUCKET = "twin-bucket"
CALLER = Principal(arn=f"arn:aws:iam::{ACCOUNT}:user/local-admin", account_id=ACCOUNT, access_key_id="AKIA")
PATIENCE_SECONDS = 20.0
UNTIL_TRAINING_SECONDS = 100
"""More than the three waits before Training together, less than the grace of a stop."""
LOG_GROUP = "/aws/sagemaker/TrainingJobs"


class Buckets:
    """An ``ObjectStore``."""

    def __init__(self, *names: str) -> None:
        self.objects: dict[str, dict[str, bytes]] = {name: {} for name in names}
        self.history: list[tuple[str, str]] = []
        """Every write and delete, in order."""
        self._lock = threading.Lock()

    def has_bucket(self, bucket: str) -> bool:
        return bucket in self.objects

    def keys(self, bucket: str, prefix: str) -> list[str]:
        with self._lock:
            return sorted(key for key in self.objects[bucket] if key.startswith(prefix))

    def read(self, bucket: str, key: str) -> bytes:
        try:
            return self.objects[bucket][key]
        except KeyError as error:
            raise FileNotFoundError(f"s3://{bucket}/{key}") from error

    def write(self, bucket: str, key: str, body: bytes) -> None:
        with self._lock:
            if bucket not in self.objects:
                raise FileNotFoundError(f"s3://{bucket}")
            self.objects[bucket][key] = body
            self.history.append(("write", key))

    def delete(self, bucket: str, key: str) -> None:
        with self._lock:
            self.objects[bucket].pop(key, None)
            self.history.append(("delete", key))


class Lines:
    """A ``LogSink``."""

    def __init__(self) -> None:
        self.puts: list[tuple[str, str, list[LogLine]]] = []

    def put(self, group: str, stream: str, lines: Sequence[LogLine]) -> None:
        self.puts.append((group, stream, list(lines)))

    def messages(self, job: str) -> list[str]:
        return [
            line.message
            for _, stream, lines in list(self.puts)
            if stream.startswith(f"{job}/")
            for line in lines
        ]


class Events:
    """An ``EventSink``."""

    def __init__(self) -> None:
        self.published: list[tuple[dict[str, Any], list[str]]] = []

    def publish(self, detail: dict[str, Any], resources: list[str]) -> None:
        self.published.append((json.loads(json.dumps(detail)), resources))

    def statuses(self, job: str) -> list[tuple[str, str]]:
        return [
            (detail["TrainingJobStatus"], detail["SecondaryStatus"])
            for detail, _ in self.published
            if detail["TrainingJobName"] == job
        ]


class Samples:
    """A ``MetricSink``."""

    def __init__(self) -> None:
        self.put_at: list[tuple[datetime, Sample]] = []

    def put(self, sample: Sample, *, at: datetime) -> None:
        self.put_at.append((at, sample))


class World:
    def __init__(self, folder: Path, clock: TwinClock) -> None:
        self.folder = folder
        self.clock = clock
        self.store = Buckets(BUCKET)
        self.logs = Lines()
        self.events = Events()
        self.metrics = Samples()
        self.journal_path = folder / "journal.jsonl"
        self.journal = Journal(self.journal_path, clock)
        self.work_dir = folder / "work"
        self.in_force = WorldInForce()
        self.twin = SageMakerTwin(self.outside(), events=self.events, account_id=ACCOUNT, seed=0)

    def outside(self) -> Outside:
        """What the twin has around it, or a part of it that is tried by itself."""
        return Outside(
            clock=self.clock,
            journal=self.journal,
            store=self.store,
            logs=self.logs,
            metrics=self.metrics,
            region=REGION,
            work_dir=self.work_dir,
            environment=lambda _: {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "AKIAJOB"},
            world=self.in_force,
        )

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        return self.twin.call(operation, params, CALLER)

    def create(self, name: str, command: Sequence[str] = ("true",), **changes: Any) -> str:
        answer = self.call("CreateTrainingJob", **(request(name, command) | changes))
        return str(answer["TrainingJobArn"])

    def describe(self, name: str) -> dict[str, Any]:
        return self.call("DescribeTrainingJob", TrainingJobName=name)

    def secondary(self, name: str) -> str:
        return str(self.describe(name)["SecondaryStatus"])

    def advance(self, seconds: float) -> None:
        """Of a manual clock."""
        self.clock.advance(timedelta(seconds=seconds))

    def train(self, name: str, command: Sequence[str] = ("true",), **changes: Any) -> None:
        """Create a job on a manual clock and bring it to Training."""
        self.create(name, command, **changes)
        self.advance(UNTIL_TRAINING_SECONDS)
        self.wait_until(name, "Training", "Uploading", "Failed")

    def train_to_end(self, name: str, command: Sequence[str], **changes: Any) -> None:
        """Of a job that ends by itself, on a manual clock."""
        self.create(name, command, **changes)
        self.advance(UNTIL_TRAINING_SECONDS)
        wait_for(lambda: self.secondary(name) not in {"Downloading", "Training"}, f"{name} exits")
        self.advance(UNTIL_TRAINING_SECONDS)
        self.finished(name)

    def wait_for_object(self, key: str, body: bytes) -> None:
        wait_for(lambda: self.store.objects[BUCKET].get(key) == body, f"s3 has {key}")

    def stop(self, name: str) -> None:
        self.call("StopTrainingJob", TrainingJobName=name)

    def wait_until(self, name: str, *statuses: str) -> dict[str, Any]:
        wait_for(lambda: self.secondary(name) in statuses, f"{name} {self.secondary(name)} -> {statuses}")
        return self.describe(name)

    def wait_for_line(self, name: str, line: str) -> None:
        wait_for(lambda: line in self.logs.messages(name), f"{name} says {line}")

    def finished(self, name: str) -> dict[str, Any]:
        return self.wait_until(
            name, "Completed", "Failed", "Stopped", "MaxRuntimeExceeded", "MaxWaitTimeExceeded"
        )

    def journal_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journal_path.read_text(encoding="utf-8").splitlines()]

    def process_events(self, name: str) -> list[tuple[str, str | None, int | None]]:
        return [
            (line["event"], line["signal"], line["exit_code"])
            for line in self.journal_lines()
            if line["training_job"] == name
        ]

    def put_source(self, key: str, files: dict[str, str]) -> str:
        """A sourcedir.tar.gz in S3; returns its URI."""
        body = io.BytesIO()
        with tarfile.open(fileobj=body, mode="w:gz") as tar:
            for name, text in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(text.encode())
                tar.addfile(member, io.BytesIO(text.encode()))
        self.store.write(BUCKET, key, body.getvalue())
        return f"s3://{BUCKET}/{key}"

    def archive(self, key: str) -> dict[str, bytes]:
        """The files of a tar.gz in S3."""
        with tarfile.open(fileobj=io.BytesIO(self.store.read(BUCKET, key))) as tar:
            return {
                member.name: file.read() for member in tar.getmembers() if (file := tar.extractfile(member))
            }


def request(name: str, command: Sequence[str] = ("true",)) -> dict[str, Any]:
    """The least that CreateTrainingJob takes, with a command of its own."""
    return {
        "TrainingJobName": name,
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/training",
        "AlgorithmSpecification": {
            "TrainingImage": f"{ACCOUNT}.dkr.ecr.{REGION}.amazonaws.com/training:1",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": list(command),
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }


def python(code: str) -> list[str]:
    """A command that runs this Python code."""
    return ["python", "-c", code]


def wait_for(condition: Callable[[], bool], what: str, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until it holds; real processes are involved."""
    deadline = time.monotonic() + patience_seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited too long: {what}"
        time.sleep(0.01)


@contextmanager
def open_world(folder: Path, clock: TwinClock) -> Iterator[World]:
    world = World(folder, clock)
    try:
        yield world
    finally:
        world.twin.close()
        world.journal.close()
        clock.close()


def manual_clock() -> TwinClock:
    """Waits are as long as in the service, and pass only when it is advanced."""
    return TwinClock(manual=True, speed=1.0)


def fast_clock() -> TwinClock:
    """What takes a minute in the service takes 30 ms, the grace of a stop 60 ms."""
    return TwinClock(manual=False, speed=2000.0)
