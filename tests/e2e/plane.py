"""The whole plane on a twin of its own, seen from outside: boto3, signed calls, control API, journal."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config

from local.twin_process import TwinProcess, running_twin
from tests.e2e.process_tree import environment_of, still_alive, tree_of
from tests.e2e.signing import Answer, Call, Keys, Scope, send, signed

T = TypeVar("T")
Document = dict[str, Any]

INSTANCE_TYPE = "ml.m5.xlarge"
IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
LOG_GROUP = "/aws/sagemaker/TrainingJobs"
PATIENCE_SECONDS = 90.0
"""For what should take a second or two; machines that build software can be slow."""
GONE_SECONDS = 30.0
_POLL_SECONDS = 0.03
_FUNCTION = "AWS_LAMBDA_LOG_GROUP_NAME"
"""Tells which function a process is of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plane:
    twin: TwinProcess
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)

    @property
    def keys(self) -> Keys:
        ready = self.twin.ready
        return Keys(access_key_id=ready["access_key_id"], secret_access_key=ready["secret_access_key"])

    def client(self, service: str, keys: Keys | None = None) -> Any:
        """Plain boto3; each call is made once."""
        who = keys or self.keys
        name = (service, who.access_key_id)
        if name not in self._clients:
            self._clients[name] = boto3.client(  # type: ignore[call-overload]
                service,
                endpoint_url=self.twin.ready["endpoint_url"],
                region_name=self.twin.ready["region"],
                aws_access_key_id=who.access_key_id,
                aws_secret_access_key=who.secret_access_key,
                aws_session_token=who.session_token,
                config=Config(retries={"total_max_attempts": 1}),
            )
        return self._clients[name]

    def call(self, method: str, path: str, document: object = None, *, keys: Keys | None = None) -> Answer:
        """A signed call of the API; ``path`` may end in a query string."""
        return send(signed(self.unsigned(method, path, document), keys or self.keys, self.scope))

    def unsigned(self, method: str, path: str, document: object = None) -> Call:
        body = b"" if document is None else json.dumps(document).encode()
        return Call(method=method, url=f"{self.twin.ready['api_url']}{path}", body=body)

    @property
    def scope(self) -> Scope:
        return Scope(region=self.twin.ready["region"])

    def add(self, request: Document, *, keys: Keys | None = None) -> Document:
        """POST /add-job; the JobView."""
        answer = self.call("POST", "/add-job", request, keys=keys)
        assert answer.status == 201, answer.body
        view: Document = answer.document["job"]
        return view

    def job(self, name: str) -> Document:
        answer = self.call("GET", f"/jobs/{name}")
        assert answer.status == 200, answer.body
        view: Document = answer.document
        return view

    def queue(self) -> list[tuple[str, str]]:
        """(name, state) of the unfinished jobs in the order of GET /jobs."""
        return [(job["name"], job["state"]) for job in self.call("GET", "/jobs").document["jobs"]]

    def await_state(self, name: str, *states: str) -> Document:
        """The JobView as soon as the job is in one of the states."""
        return eventually(lambda: self.job(name), lambda job: job["state"] in states)

    def control(self, path: str, document: Document) -> Document:
        body, headers = json.dumps(document).encode(), {"content-type": "application/json"}
        url = f"{self.twin.ready['control_url']}{path}"
        answer = send(Call(method="POST", url=url, body=body, headers=headers))
        assert answer.status == 200, answer.body
        found: Document = answer.document
        return found

    def clock(self, seconds: float) -> None:
        """Move a manual clock; everything due by then has happened."""
        self.control("/clock", {"advance_seconds": seconds})

    def described(self, name: str) -> Document:
        found: Document = self.client("sagemaker").describe_training_job(TrainingJobName=name)
        return found

    def await_status(self, name: str, *statuses: str) -> Document:
        """The training job as soon as its status or secondary status is one of these."""
        return eventually(
            lambda: self.described(name),
            lambda seen: not {seen["TrainingJobStatus"], seen["SecondaryStatus"]}.isdisjoint(statuses),
        )

    def log(self, name: str) -> str:
        """What a training job printed so far, at most a page of each stream."""
        logs = self.client("logs")
        try:
            found = logs.describe_log_streams(logGroupName=LOG_GROUP, logStreamNamePrefix=f"{name}/")
        except logs.exceptions.ResourceNotFoundException:  # made with the first line of the first job
            return ""
        streams = [one["logStreamName"] for one in found["logStreams"]]
        pages = [
            logs.get_log_events(logGroupName=LOG_GROUP, logStreamName=one, startFromHead=True)
            for one in streams
        ]
        return "\n".join(event["message"] for page in pages for event in page["events"])

    def await_log(self, name: str, text: str) -> None:
        """Wait until a training job has printed this."""
        eventually(lambda: self.log(name), lambda printed: text in printed)

    def calls(self, operation: str, *, after: int = 0) -> list[Document]:
        """Calls of an operation in the journal, in their order."""
        return [
            one
            for one in self.twin.records()
            if one["kind"] == "call" and one["operation"] == operation and one["seq"] > after
        ]

    def processes(self, training_job: str) -> list[Document]:
        """Process events of a training job in the journal."""
        records = self.twin.records()
        return [one for one in records if one["kind"] == "process" and one["training_job"] == training_job]

    def request(self, name: str, command: list[str], **changes: Any) -> Document:
        """A CreateTrainingJob request that runs ``command`` in its container; None leaves a field out."""
        ready = self.twin.ready
        whole: Document = {
            "TrainingJobName": name,
            "RoleArn": ready["role_arn"],
            "AlgorithmSpecification": {
                "TrainingImage": IMAGE,
                "TrainingInputMode": "File",
                "ContainerEntrypoint": command,
            },
            "OutputDataConfig": {"S3OutputPath": f"s3://{ready['bucket']}/output"},
            "ResourceConfig": {"InstanceType": INSTANCE_TYPE, "InstanceCount": 1, "VolumeSizeInGB": 10},
            "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        }
        return {field: value for field, value in (whole | changes).items() if value is not None}


@contextmanager
def running_plane(
    folder: Path, *options: str, policy: Mapping[str, Any] | None = None, checkout: Path | None = None
) -> Iterator[Plane]:
    """A twin with these options of ``local up``; when it ends, none of its processes may be left."""
    with running_twin(folder, policy=dict(policy or pool(3)), options=options, checkout=checkout) as twin:
        plane = Plane(twin=twin)
        yield plane
        processes = tree_of(twin.ready["pid"])
    left = still_alive(processes, within_seconds=GONE_SECONDS)
    assert not left, f"outlived the twin: {left}"


def pool(capacity: int, **more: Any) -> Document:
    """A policy with one pool of the type that ``Plane.request`` asks for."""
    return {
        "version": 1,
        "pools": [
            {"name": "main", "capacity": {INSTANCE_TYPE: capacity}, "spot_capacity": {INSTANCE_TYPE: 1}}
        ],
    } | more


def tags(**pairs: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs.items()]


def python(code: str) -> list[str]:
    """An exec-form container command."""
    return ["python", "-c", code]


def until_exists(path: Path) -> list[str]:
    """A container that runs until somebody makes this file."""
    return ["sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.05; done', str(path)]


def eventually(
    look: Callable[[], T], accept: Callable[[T], bool], *, patience: float = PATIENCE_SECONDS
) -> T:
    """What ``look`` sees as soon as that is acceptable; ``patience`` in seconds."""
    deadline = time.monotonic() + patience
    while not accept(seen := look()):
        assert time.monotonic() < deadline, f"still: {seen}"
        time.sleep(_POLL_SECONDS)
    return seen


def member(plane: Plane, team: str) -> Keys:
    """Those of a session of the role that is the team's by its name."""
    role = f"arn:aws:iam::{plane.twin.ready['account_id']}:role/{team}-ann"
    made = plane.client("sts").assume_role(RoleArn=role, RoleSessionName="ann")["Credentials"]
    return Keys(
        access_key_id=made["AccessKeyId"],
        secret_access_key=made["SecretAccessKey"],
        session_token=made["SessionToken"],
    )


def keys_of(plane: Plane, function: str) -> Keys:
    """Those of a function's role, read where an intruder would find them: in its process."""
    tree = tree_of(plane.twin.ready["pid"])
    environments = [environment_of(pid) for pid in tree]
    found = [one for one in environments if one.get(_FUNCTION, "").endswith(f"-{function}")]
    return Keys(
        access_key_id=found[0]["AWS_ACCESS_KEY_ID"],
        secret_access_key=found[0]["AWS_SECRET_ACCESS_KEY"],
        session_token=found[0]["AWS_SESSION_TOKEN"],
    )
