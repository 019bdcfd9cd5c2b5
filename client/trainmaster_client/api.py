"""trainmaster's REST API: where it is, one method a route, and refusals as typed errors."""

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.errors import (
    ApiNotConfiguredError,
    FieldProblem,
    GatewayRefusedError,
    InvalidArgumentError,
    PolicyViolationError,
    Problem,
    TrainmasterClientError,
    UnexpectedAnswerError,
    refused,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import Answer, document_of, printable, skew_of, trouble_of
from trainmaster_client.http.transport import ATTEMPTS, SignedTransport

API_URL_VARIABLE = "TRAINMASTER_API_URL"
API_URL_PARAMETER = "/trainmaster/api-url"

_SSM_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
"""Seconds. Off the network the answer is an error within seconds, not minutes."""


Document: TypeAlias = dict[str, Any]
"""A JSON object exactly as the API sent it."""

_REQUEST_ID_HEADER = "x-amzn-requestid"


class AnsweredDocument(dict[str, Any]):
    """With the id under which API Gateway keeps its request; empty where something else answered."""

    request_id: str = ""


def request_id_of(document: Document | None) -> str:
    return document.request_id if isinstance(document, AnsweredDocument) else ""


_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
"""SageMaker API reference, CreateTrainingJob, TrainingJobName."""
_MOST_PAGES = 1000
"""Of 4 MB each: a server that always has one more is not followed for ever."""
_SHOWN = 80
"""Characters of what is no job name."""
_ELSEWHERE = frozenset({Trouble.NOT_THE_API, Trouble.WRONG_STAGE, Trouble.WRONG_ENDPOINT})


class ApiClient:
    """Speaks for one caller with one API.

    Args:
        api_url: With the stage, e.g. ``https://<api>-<endpoint>.execute-api.<region>.amazonaws.com/prod``.
        boto_session: Whose credentials sign; its region counts where the URL does not name one.
        pause: Waits that many seconds between two tries.
    """

    def __init__(
        self, api_url: str, boto_session: boto3.Session, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._transport = SignedTransport(api_url, boto_session, pause=pause)

    @property
    def api_url(self) -> str:
        return self._transport.api_url

    @property
    def region(self) -> str:
        return self._transport.region

    def add_job(self, request: Mapping[str, Any]) -> Document:
        """Queue a CreateTrainingJob request, sent as it is.

        The server takes the same name and body again as the same job, so a lost answer is asked for again.
        """
        return self._call("POST", "/add-job", request, attempts=ATTEMPTS)

    def try_job(self, request: Mapping[str, Any]) -> Document:
        """What would become of a request: violations, its place, its likely start. Stores nothing."""
        return self._call("POST", "/add-job?dry_run=true", request, attempts=ATTEMPTS)

    def job(self, name: str, *, estimate: bool = True, request: bool = False) -> Document:
        """One job; without an estimate of its start the answer costs the server next to nothing.

        With ``request`` also the CreateTrainingJob request as it was submitted.
        """
        asked = {"estimate": None if estimate else "false", "request": "true" if request else None}
        return self._read(f"/jobs/{_path_name(name)}{_query(asked)}")

    def jobs(self, **filters: str | None) -> Document:
        """One page. ``filters`` are the query parameters: state, team, pool, limit, next_token."""
        return self._read(f"/jobs{_query(filters)}")

    def change(self, name: str, *, priority: int | None = None, held: bool | None = None) -> Document:
        """Said twice it is the same, so a lost answer is asked for again."""
        wanted = {"priority": priority, "held": held}
        given = {key: value for key, value in wanted.items() if value is not None}
        return self._call("PATCH", f"/jobs/{_path_name(name)}", given, attempts=ATTEMPTS)

    def cancel(self, name: str) -> Document:
        return self._call("DELETE", f"/jobs/{_path_name(name)}")

    def pools(self) -> Document:
        """All of them, however many answers that takes."""
        return self._whole("/pools", {}, "pools")

    def usage(self, *, team: str | None = None, month: str | None = None) -> Document:
        """Of one team and month; without them the caller's only team, this month."""
        return self._whole("/usage", {"team": team, "month": month}, "jobs", "preemptions")

    def violations(self, *, month: str | None = None, next_token: str | None = None) -> Document:
        """One page of one month; without a month of this one."""
        return self._read(f"/violations{_query({'month': month, 'next_token': next_token})}")

    def policy(self, revision: int | None = None) -> Document:
        """The policy in force, or what an earlier revision of it said."""
        return self._read("/policy" if revision is None else f"/policy?revision={revision}")

    def put_policy(self, policy: Mapping[str, Any], *, text: str | None = None) -> Document:
        """``text``: what it was written as, kept beside the document where the API keeps texts."""
        if text is not None:
            try:
                return self._call("PUT", "/policy", {"policy": policy, "text": text})
            except PolicyViolationError as error:
                if not {"policy", "text"} <= {one.field for one in error.problem.errors}:
                    raise  # else an API that knows no texts took both for unknown keys
        return self._call("PUT", "/policy", policy)

    def try_policy(self, policy: Mapping[str, Any]) -> Document:
        """What a put would answer, and in ``changes`` what it would do to jobs. Changes nothing."""
        return self._call("PUT", "/policy?dry_run=true", policy, attempts=ATTEMPTS)

    def set_paused(self, paused: bool) -> Document:  # noqa: FBT001  as in the API
        """Said twice it is the same, so a lost answer is asked for again."""
        return self._call("PUT", "/policy/paused", {"paused": paused}, attempts=ATTEMPTS)

    def repair(self) -> Document:
        """How far the newest count of the table is, and what it found."""
        return self._read("/repair")

    def start_repair(self, *, apply: bool) -> Document:
        """Said twice while it runs it is the same, so a lost answer is asked for again."""
        return self._call("POST", "/repair", {"apply": apply}, attempts=ATTEMPTS)

    def _whole(self, path: str, asked: Mapping[str, str | None], *lists: str) -> Document:
        """The last page, with what the lists had on those before it; an older API has one page."""
        page = self._read(f"{path}{_query(asked)}")
        for _ in range(_MOST_PAGES):
            before, token = page, page.get("next_token")
            if not token:
                break
            page = self._read(f"{path}{_query({**asked, 'next_token': str(token)})}")
            there = [key for key in lists if key in before or key in page]
            page |= {key: [*(before.get(key) or ()), *(page.get(key) or ())] for key in there}
            if page.get("next_token") == token:
                break
        return page

    def _read(self, path: str) -> Document:
        return self._call("GET", path, attempts=ATTEMPTS)

    def _call(
        self, method: str, path: str, document: Mapping[str, Any] | None = None, *, attempts: int = 1
    ) -> Document:
        body = None if document is None else json.dumps(document).encode()
        return self._parsed(self._transport.send_patiently(method, path, body, attempts=attempts))

    def _parsed(self, answer: Answer) -> Document:
        document = document_of(answer)
        request_id = answer.headers.get(_REQUEST_ID_HEADER, "")
        if answer.status in range(200, 300) and document is not None:
            answered = AnsweredDocument(document)
            answered.request_id = request_id
            return answered
        error = self._error(answer, document)
        error.request_id = request_id
        raise error

    def _error(self, answer: Answer, document: Document | None) -> TrainmasterClientError:
        now = datetime.now(UTC)
        trouble = trouble_of(answer, now=now)
        problem = _problem(answer, document or {})
        if document is None and answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return UnexpectedAnswerError(self.api_url, what=_description(answer))
        if trouble in _ELSEWHERE:
            what = f"{problem.detail} ({problem.status})"
            return UnexpectedAnswerError(self.api_url, what=what, trouble=trouble)
        if trouble is None or answer.status != HTTPStatus.FORBIDDEN:
            return refused(problem)
        skew = skew_of(answer, now=now)
        measured = f"This machine's clock is {skew}." if skew and trouble is Trouble.CLOCK else ""
        return GatewayRefusedError(problem, trouble, detail=measured)


def find_api_url(
    api_url: str | None, boto_session: boto3.Session, env: Mapping[str, str] = os.environ
) -> str:
    """Raises ApiNotConfiguredError, which names all three places."""
    return api_url or env.get(API_URL_VARIABLE) or _from_parameter(boto_session)


def _from_parameter(boto_session: boto3.Session) -> str:
    try:
        client = boto_session.client("ssm", config=_SSM_CONFIG)
        return client.get_parameter(Name=API_URL_PARAMETER)["Parameter"]["Value"]
    except ClientError as error:
        raise _not_configured(error.response["Error"]["Code"]) from error
    except (BotoCoreError, ValueError) as error:  # ValueError: AWS_ENDPOINT_URL is no URL
        raise _not_configured(str(error)) from error


def _not_configured(why: str) -> ApiNotConfiguredError:
    return ApiNotConfiguredError(variable=API_URL_VARIABLE, parameter=API_URL_PARAMETER, why=why)


def field_problem(document: Mapping[str, Any] | str) -> FieldProblem:
    """One entry of ``errors`` or ``warnings``; a warning may be bare text."""
    if isinstance(document, str):
        return FieldProblem(field="", message=printable(document))
    return FieldProblem(**{key: printable(document.get(key)) for key in ("field", "message", "hint", "rule")})


def _query(parameters: Mapping[str, str | None]) -> str:
    given = {key: value for key, value in parameters.items() if value is not None}
    return f"?{urlencode(given, quote_via=quote, safe='')}" if given else ""


def _path_name(name: str) -> str:
    """Job names need no encoding; anything else must not become another path."""
    if not _JOB_NAME.fullmatch(name):
        shown = repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")
        raise InvalidArgumentError(
            f"{shown} is not a job name.", hint="Names are 1 to 63 letters, digits and inner hyphens."
        )
    return name


def _problem(answer: Answer, document: Document) -> Problem:
    """Also reads what the gateway says by itself: ``{"message": ...}``."""
    detail = document.get("detail") or document.get("message") or document.get("Message")
    errors = document.get("errors")
    entries = errors if isinstance(errors, list) else []
    return Problem(
        status=answer.status,
        title=printable(document.get("title")) or "The API refused",
        detail=printable(detail) or _description(answer),
        errors=tuple(field_problem(entry) for entry in entries if isinstance(entry, dict)),
        retry_after=printable(answer.headers.get("retry-after")),
    )


def _description(answer: Answer) -> str:
    kind = answer.headers.get("content-type", "no content type")
    where = answer.headers.get("location")
    redirect = f", a redirect to {printable(where)[:200]}" if where else ""
    return f"status {answer.status} with {printable(kind)}, {len(answer.body)} bytes{redirect}"
