"""The policy document on its way: out of a user's file, through the API, into the state folder."""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from local.deployment.deployment_errors import DeploymentError
from local.documents import read_map
from local.wire import Request, Response

_TIMEOUT_SECONDS = 60


class PolicyError(DeploymentError):
    """The policy cannot be read, or the API does not accept it."""


def read_policy(path: Path) -> Mapping[str, Any]:
    """Read a policy document from a YAML or JSON file; raises PolicyError."""
    return read_map(path, what="policy", error_kind=PolicyError)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyMemory:
    """Keeps the last accepted policy, so that the next twin with the same state folder begins with it."""

    path: Path

    def recall(self) -> Mapping[str, Any] | None:
        return read_policy(self.path) if self.path.exists() else None

    def answered(self, request: Request, path: str, response: Response) -> None:
        """Look at a call of the API: an accepted policy is remembered, one that was only tried is not."""
        is_tried = parse_qs(request.query).get("dry_run") == ["true"]
        if (request.method, path, response.status) == ("PUT", "/policy", HTTPStatus.OK) and not is_tried:
            draft = self.path.with_suffix(".draft")
            draft.write_bytes(request.body)
            draft.replace(self.path)


def put_policy(policy: Mapping[str, Any], *, api_url: str, credentials: Credentials, region: str) -> None:
    """Put the policy as a user would; raises PolicyError with everything the API says against it."""
    try:
        body = json.dumps(policy)
    except (TypeError, ValueError) as error:
        raise PolicyError(f"policy: {error}") from error
    request = AWSRequest("PUT", f"{api_url}/policy", data=body, headers={"content-type": "application/json"})
    SigV4Auth(credentials, "execute-api", region).add_auth(request)
    url = urlsplit(str(request.url))
    connection = http.client.HTTPConnection(url.netloc, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("PUT", url.path, body=body, headers=dict(request.headers.items()))
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != HTTPStatus.OK:
        raise PolicyError(f"policy: {_objections(answer)}")


def _objections(answer: bytes) -> str:
    """Return the errors of a problem document in one line, or the answer itself."""
    try:
        problem = json.loads(answer)
        errors = [f"{error['field']}: {error['message']}" for error in problem.get("errors", [])]
        return "; ".join(errors) or problem.get("detail") or problem.get("title") or problem["message"]
    except (ValueError, TypeError, KeyError, AttributeError):
        return answer.decode(errors="replace")
