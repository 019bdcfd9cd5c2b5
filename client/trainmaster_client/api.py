"""trainmaster's REST API, one method a route: safe calls are retried, refusals are typed errors."""

import json
import random
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import boto3

from trainmaster_client.errors import (
    ApiUnreachableError,
    FieldProblem,
    GatewayRefusedError,
    InvalidArgumentError,
    Problem,
    TrainmasterClientError,
    UnexpectedAnswerError,
    refused,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import Answer, document_of, skew_of, trouble_of
from trainmaster_client.http.printable import printable
from trainmaster_client.http.transport import SignedTransport

Document: TypeAlias = dict[str, Any]
"""A JSON object exactly as the API sent it."""

ATTEMPTS = 3
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 4.0
PATIENCE_SECONDS = 5
"""After 429: a shorter Retry-After is waited for, of a longer one the user is told."""

_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
"""SageMaker API reference, CreateTrainingJob, TrainingJobName."""
_SHOWN = 80
"""Characters of what is no job name."""


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
        self._transport = SignedTransport(api_url, boto_session)
        self._pause = pause

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
        return self._read("/pools")

    def usage(self, *, team: str | None = None, month: str | None = None) -> Document:
        """Of one team and month; without them the caller's only team, this month."""
        return self._read(f"/usage{_query({'team': team, 'month': month})}")

    def violations(self, *, month: str | None = None, next_token: str | None = None) -> Document:
        """One page of one month; without a month of this one."""
        return self._read(f"/violations{_query({'month': month, 'next_token': next_token})}")

    def policy(self, revision: int | None = None) -> Document:
        """The policy in force, or what an earlier revision of it said."""
        return self._read("/policy" if revision is None else f"/policy?revision={revision}")

    def put_policy(self, policy: Mapping[str, Any]) -> Document:
        return self._call("PUT", "/policy", policy)

    def try_policy(self, policy: Mapping[str, Any]) -> Document:
        """What a put would answer, and in ``changes`` what it would do to jobs. Changes nothing."""
        return self._call("PUT", "/policy?dry_run=true", policy, attempts=ATTEMPTS)

    def set_paused(self, paused: bool) -> Document:  # noqa: FBT001  as in the API
        """Said twice it is the same, so a lost answer is asked for again."""
        return self._call("PUT", "/policy/paused", {"paused": paused}, attempts=ATTEMPTS)

    def _read(self, path: str) -> Document:
        return self._call("GET", path, attempts=ATTEMPTS)

    def _call(
        self, method: str, path: str, document: Mapping[str, Any] | None = None, *, attempts: int = 1
    ) -> Document:
        body = None if document is None else json.dumps(document).encode()
        for attempt in range(1, attempts):
            answer = self._try(method, path, body)
            pause = full_jitter(attempt) if answer is None else _pause_wanted(answer)
            if answer is not None and pause is None:
                return self._parsed(answer)
            self._pause(pause or 0)
        return self._parsed(self._transport.send(method, path, body))

    def _try(self, method: str, path: str, body: bytes | None) -> Answer | None:
        """None when another try may help: no answer, or the server's own failure. Never on 4xx."""
        try:
            answer = self._transport.send(method, path, body)
        except ApiUnreachableError as error:
            if error.trouble in _LASTING:
                raise
            return None
        return answer if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR else None

    def _parsed(self, answer: Answer) -> Document:
        document = document_of(answer)
        if answer.status in range(200, 300) and document is not None:
            return document
        raise self._error(answer, document)

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


_LASTING = frozenset({Trouble.HOST_UNKNOWN, Trouble.TLS})
"""Another try within seconds does not help."""
_ELSEWHERE = frozenset({Trouble.NOT_THE_API, Trouble.WRONG_STAGE, Trouble.WRONG_ENDPOINT})


def _pause_wanted(answer: Answer) -> float | None:
    """Seconds until the server takes a request that came too soon; None: nothing to wait for, or too long."""
    if answer.status != HTTPStatus.TOO_MANY_REQUESTS:
        return None
    seconds = answer.headers.get("retry-after", "")
    if not seconds.isdecimal() or int(seconds) > PATIENCE_SECONDS:
        return None
    return float(seconds)


def full_jitter(attempt: int) -> float:
    """Seconds to wait after that many tries: anything up to a bound that doubles each time."""
    bound = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
    return random.uniform(0, bound)  # noqa: S311  spreads load, guards nothing


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
