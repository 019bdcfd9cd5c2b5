"""A whole twin in this process, and how a test talks to it."""

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from local.config import ReadyInfo, TwinConfig
from local.twin import Twin

FIXTURE = Path(__file__).parents[2] / "fixtures" / "twin" / "template.yaml"
POLICY = {
    "version": 1,
    "pools": [{"name": "cpu", "capacity": {"ml.m5.large": 2}, "warm_pool": {"keep_alive": "0s"}}],
}


PATIENCE_SECONDS = 90.0


def eventually(holds: Callable[[], bool]) -> bool:
    """Wait for what happens beside the test: a line that is still on its way, a process that is ending."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTwin:
    ready: ReadyInfo
    folder: Path

    @property
    def keys(self) -> Credentials:
        return Credentials(self.ready.access_key_id, self.ready.secret_access_key)

    def client(self, service: str, keys: Credentials | None = None) -> Any:
        keys = keys or self.keys
        return boto3.client(  # type: ignore[call-overload]
            service,
            endpoint_url=self.ready.endpoint_url,
            region_name=self.ready.region,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            aws_session_token=keys.token,
            config=Config(retries={"total_max_attempts": 1}),
        )

    def session_of(self, role: str, name: str = "someone") -> Credentials:
        arn = f"arn:aws:iam::{self.ready.account_id}:role/{role}"
        keys = self.client("sts").assume_role(RoleArn=arn, RoleSessionName=name)["Credentials"]
        return Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])

    def api(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        keys: Credentials | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """A signed call of the API; ``body`` as JSON unless it is bytes."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json", **(headers or {})}
        request = AWSRequest(method, f"{self.ready.api_url}{path}", data=data, headers=sent)
        SigV4Auth(keys or self.keys, "execute-api", self.ready.region).add_auth(request)
        return self.send(method, f"{self.ready.api_url}{path}", data, dict(request.headers.items()))

    def control(self, method: str, path: str, body: Any = None) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send(
            method, f"{self.ready.control_url}{path}", data, {"content-type": "application/json"}
        )

    def advance(self, seconds: float) -> str:
        answer = self.control("POST", "/clock", {"advance_seconds": seconds})
        assert answer.status == 200, answer.body
        return str(answer.json["clock"])

    def send(self, method: str, url: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        try:
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
            connection.request(method, target, body=body, headers=headers)
            response = connection.getresponse()
            return Answer(status=response.status, body=response.read())
        finally:
            connection.close()

    def log_of(self, function_folder: str) -> str:
        file = self.folder / "state" / "logs" / f"{function_folder}.log"
        return file.read_text() if file.exists() else ""

    def journal(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "journal").read_text().splitlines()]


@contextmanager
def running_twin(folder: Path, **settings: Any) -> Iterator[RunningTwin]:
    config = TwinConfig(state=folder / "state", journal=folder / "journal", **settings)
    with Twin(config) as ready:
        yield RunningTwin(ready=ready, folder=folder)
