"""Results of single checks, and the facts that all checks so far have gathered."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.errors.remedies import ADVICE
from trainmaster_client.errors.troubles import Advice, Trouble
from trainmaster_client.http.answers import Answer, document_of
from trainmaster_client.http.transport import SignedTransport

_CONFIG = Config(connect_timeout=3, read_timeout=10, retries={"total_max_attempts": 1})
"""Seconds. Several services are asked; off the network each must fail soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    ok: bool | None
    """Whether the check passed; None if it neither passed nor failed, for the reason in ``why``."""
    actual: Any
    trouble: Trouble | None = None
    why: str = ""
    blocks: bool = False
    """True when what needs this cannot be looked at."""

    @property
    def advice(self) -> Advice | None:
        return None if self.trouble is None else ADVICE[self.trouble]

    @property
    def word(self) -> str:
        if self.ok is None:
            return "skip" if self.trouble is None else "warn"
        return "ok" if self.ok else "FAIL"


def good(actual: Any) -> Finding:  # noqa: ANN401  JSON
    return Finding(ok=True, actual=actual)


def bad(trouble: Trouble, actual: Any) -> Finding:  # noqa: ANN401  JSON
    return Finding(ok=False, actual=actual, trouble=trouble, blocks=True)


def worth_a_warning(trouble: Trouble, actual: Any) -> Finding:  # noqa: ANN401  JSON
    """Make a finding: nothing is broken, but somebody may want to act."""
    return Finding(ok=None, actual=actual, trouble=trouble, why=f"warning: {ADVICE[trouble].cause}")


def skipped(why: str) -> Finding:
    """Make a finding that cannot be known here, which is no fault."""
    return Finding(ok=None, actual=None, why=why)


def blocked(by: str) -> Finding:
    return Finding(ok=None, actual=None, why=f"{by} comes first", blocks=True)


@dataclass(slots=True, kw_only=True)
class Seen:
    """Facts that the checks so far have gathered; later checks build on them."""

    env: Mapping[str, str]
    now: Callable[[], datetime]
    make_session: Callable[[], boto3.Session] = boto3.Session
    found: boto3.Session | None = None
    api_url: str = ""
    is_from_parameter: bool = False
    region: str = ""
    wire: SignedTransport | None = None
    unsigned: Answer | None = None
    """The API's answer to an unsigned call."""
    caller_arn: str | None = None
    """The caller's ARN as STS names it; None if STS did not answer."""
    answer: Answer | None = None
    """The API's answer to the first signed call, GET /pools."""
    policy: Mapping[str, Any] | None = None
    """Answer of GET /policy; None if the caller is not an admin."""
    facts: dict[str, Any] = field(default_factory=lambda: {"answers": []})

    @property
    def session(self) -> boto3.Session:
        assert self.found is not None, "the configuration is read first"
        return self.found

    @property
    def pools(self) -> list[Mapping[str, Any]]:
        document = (document_of(self.answer) if self.answer else None) or {}
        pools = document.get("pools")
        return [pool for pool in pools if isinstance(pool, dict)] if isinstance(pools, list) else []

    def transport(self) -> SignedTransport:
        if self.wire is None:
            self.wire = SignedTransport(self.api_url, self.session)
        return self.wire

    def client(self, service: str) -> Any:  # noqa: ANN401  boto3's clients are made at run time
        return self.session.client(service, region_name=self.region, config=_CONFIG)  # type: ignore[call-overload]

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """Send a signed call and note it. Raises ApiUnreachableError and CredentialsError."""
        return self.noted(f"{method} {path}", self.transport().send(method, path, body))

    def noted(self, call: str, answer: Answer) -> Answer:
        shown = ("x-amzn-errortype", "trainmaster-version", "date", "content-type")
        headers = {name: answer.headers[name] for name in shown if name in answer.headers}
        record = {"call": call, "at": self.now().isoformat(), "status": answer.status, "headers": headers}
        self.facts["answers"].append(record)
        return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSaid:
    """The reason why a call of AWS brought no answer."""

    code: str
    """Empty where there was no answer."""
    why: str


def asked(call: Callable[[], Any]) -> Any | AwsSaid:  # noqa: ANN401  boto3's answers
    """Make a client and call AWS; return the answer, or the error as a value."""
    try:
        return call()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        return AwsSaid(code=code, why=f"{error.operation_name}: {code}")
    except (BotoCoreError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL is no URL
        return AwsSaid(code="", why=" ".join(str(error).split()))
