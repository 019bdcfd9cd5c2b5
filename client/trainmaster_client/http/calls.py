"""Calls of the API: queries, answers as documents with what their headers say, refusals as typed errors."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

import boto3

from trainmaster_client.errors import (
    FieldProblem,
    GatewayRefusedError,
    InvalidArgumentError,
    Problem,
    TrainmasterClientError,
    UnexpectedAnswerError,
    refused,
)
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import (
    Answer,
    document_of,
    kind_of,
    seconds_to_wait,
    shown,
    skew_of,
    trouble_of,
)
from trainmaster_client.http.rate_limits import ONCE_A_PROCESS, Say
from trainmaster_client.http.transport import ATTEMPTS, SignedTransport, pause_for

Document: TypeAlias = dict[str, Any]
"""A JSON object exactly as the API sent it."""
Parameter: TypeAlias = str | bool | int | datetime | None
"""A query parameter as Python has it; None leaves it out."""

_REQUEST_ID_HEADER = "x-amzn-requestid"
_NEXT_PAGE_HEADER = "trainmaster-next-token"
"""Header with the next page's token, in answers that are not JSON."""
_CSV = "text/csv"


class AnsweredDocument(dict[str, Any]):
    """A document with API Gateway's id of the request and the answer's entity tag, each "" if it had none."""

    request_id: str = ""
    etag: str = ""
    size: int = 0
    """Bytes of the answer."""


def request_id_of(document: Document | None) -> str:
    return document.request_id if isinstance(document, AnsweredDocument) else ""


def etag_of(document: Document | None) -> str:
    """Return the entity tag that ``ApiClient.jobs_unless`` takes; empty if the API sent none."""
    return document.etag if isinstance(document, AnsweredDocument) else ""


def _size_of(document: Document) -> int:
    return document.size if isinstance(document, AnsweredDocument) else 0


_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
"""SageMaker API reference, CreateTrainingJob, TrainingJobName."""
_MOST_PAGES = 1000
"""Pages of one list, of up to 4 MB each: a server that always has one more is not followed for ever."""
_MOST_LIST_BYTES = 256 * 1024 * 1024
"""Bytes of the pages of one list, for the same reason."""
_MOST_ERRORS = 100
"""Mistakes that are shown; the API names 50 at once."""
_LONGEST_WAIT_SECONDS = 24 * 3600
"""The API's own limits are per minute: what asks for a longer wait is another server."""
_SHOWN = 80
"""Characters that are shown of a text that is not a job name."""
_ELSEWHERE = frozenset({Trouble.NOT_THE_API, Trouble.WRONG_STAGE, Trouble.WRONG_ENDPOINT})


class ApiCalls:
    """Speaks for one caller with one API.

    Args:
        api_url: With the stage, e.g. ``https://<api>-<endpoint>.execute-api.<region>.amazonaws.com/prod``.
        boto_session: Whose credentials sign; its region counts where the URL does not name one.
        pause: Waits that many seconds between two tries.
        say: Is given a line with each wait for a rate limit; the default prints one a process to stderr.
    """

    def __init__(
        self,
        api_url: str,
        boto_session: boto3.Session,
        *,
        pause: Callable[[float], None] = pause_for,
        say: Say = ONCE_A_PROCESS,
    ) -> None:
        self._transport = SignedTransport(api_url, boto_session, pause=pause, say=say)

    @property
    def api_url(self) -> str:
        return self._transport.api_url

    @property
    def region(self) -> str:
        return self._transport.region

    def caller_key(self) -> str:
        """Return the id of the access key that signs now. Raises CredentialsError."""
        return self._transport.credentials().access_key or ""

    def _whole(self, path: str, parameters: Mapping[str, Parameter], *lists: str) -> Document:
        """Return the last page, with the lists of all pages joined; an older API has one page."""
        page = self._read(f"{path}{query(parameters)}")
        size = _size_of(page)
        for _ in range(_MOST_PAGES):
            before, token = page, page.get("next_token")
            if not token:
                break
            page = self._read(f"{path}{query({**parameters, 'next_token': str(token)})}")
            size += _size_of(page)
            self._check_size(size)
            there = [key for key in lists if key in before or key in page]
            page |= {key: [*self._list(before, key), *self._list(page, key)] for key in there}
            if page.get("next_token") == token:
                break
        return page

    def _list(self, page: Document, key: str) -> list[Any]:
        entries = page.get(key) or []
        if not isinstance(entries, list):
            raise UnexpectedAnswerError(self.api_url, what=f"{key} is not a list")
        return entries

    def _check_size(self, size: int) -> None:
        if size > _MOST_LIST_BYTES:
            most = f"{_MOST_LIST_BYTES // 1024 // 1024} MiB"
            raise UnexpectedAnswerError(self.api_url, what=f"the pages of its list are longer than {most}")

    def _whole_csv(self, path: str, parameters: Mapping[str, Parameter]) -> str:
        """Join all pages under the head line of the first one."""
        pages, token, size = [], "", 0
        for _ in range(_MOST_PAGES):
            before = token
            page, token = self._text_page(path, {**parameters, "next_token": token or None}, _CSV)
            pages.append(page.partition("\n")[2] if before else page)
            size += len(page)
            self._check_size(size)
            if token in {"", before}:
                break
        return "".join(pages)

    def _text_page(self, path: str, parameters: Mapping[str, Parameter], kind: str) -> tuple[str, str]:
        """Return a page that is not JSON, and the token of the next; "" if it is the last."""
        answer = self._transport.send_patiently(
            "GET", f"{path}{query(parameters)}", attempts=ATTEMPTS, headers={"accept": kind}
        )
        content_type = answer.headers.get("content-type", "").partition(";")[0].strip()
        if answer.status == HTTPStatus.OK and content_type == kind:
            return answer.body.decode(errors="replace"), answer.headers.get(_NEXT_PAGE_HEADER, "")
        if answer.status == HTTPStatus.OK:
            raise UnexpectedAnswerError(self.api_url, what=_description(answer))
        raise self._failure(answer, document_of(answer))

    def _read(self, path: str) -> Document:
        return self._call("GET", path, attempts=ATTEMPTS)

    def _read_unless(self, etag: str, path: str) -> Document | None:
        """Read a document; None if it still has this entity tag."""
        headers = {"if-none-match": etag} if etag else {}
        answer = self._transport.send_in_turn("GET", path, attempts=ATTEMPTS, headers=headers)
        return None if etag and answer.status == HTTPStatus.NOT_MODIFIED else self._parsed(answer)

    def _call(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None = None,
        *,
        attempts: int = 1,
        headers: Mapping[str, str] | None = None,
    ) -> Document:
        body = None if document is None else json.dumps(document).encode()
        answer = self._transport.send_in_turn(method, path, body, attempts=attempts, headers=headers)
        return self._parsed(answer)

    def _parsed(self, answer: Answer) -> Document:
        document = document_of(answer)
        if answer.status not in range(200, 300) or document is None:
            raise self._failure(answer, document)
        answered = AnsweredDocument(document)
        answered.request_id = answer.headers.get(_REQUEST_ID_HEADER, "")
        answered.etag = answer.headers.get("etag", "")
        answered.size = len(answer.body)
        return answered

    def _failure(self, answer: Answer, document: Document | None) -> TrainmasterClientError:
        error = self._error(answer, document)
        error.request_id = shown(answer.headers.get(_REQUEST_ID_HEADER))
        return error

    def _error(self, answer: Answer, document: Document | None) -> TrainmasterClientError:
        now = datetime.now(UTC)
        trouble = trouble_of(answer, now=now)
        problem = _problem(answer, document or {})
        if (seconds_to_wait(answer) or 0) > _LONGEST_WAIT_SECONDS and answer.status < 500:  # noqa: PLR2004  5xx
            what = f"status {answer.status}, and to be asked again in {seconds_to_wait(answer)} s"
            return UnexpectedAnswerError(self.api_url, what=what)
        if document is None and answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            return UnexpectedAnswerError(self.api_url, what=_description(answer))
        if trouble in _ELSEWHERE:
            what = f"{problem.detail} ({problem.status})"
            return UnexpectedAnswerError(self.api_url, what=what, trouble=trouble)
        if trouble is None or answer.status != HTTPStatus.FORBIDDEN:
            return refused(problem)
        skew = skew_of(answer, now=now)
        measured = f"This machine's clock is {skew}." if skew and trouble is Trouble.CLOCK else ""
        error = GatewayRefusedError(problem, trouble, detail=measured)
        if trouble is Trouble.EXPIRED_CREDENTIALS:
            error.may_be_renewed = self._transport.takes_new_credentials
        return error


def field_problem(document: Mapping[str, Any] | str) -> FieldProblem:
    """Read an entry of ``errors`` or ``warnings``; a warning may be bare text."""
    if isinstance(document, str):
        return FieldProblem(field="", message=shown(document))
    return FieldProblem(**{key: shown(document.get(key)) for key in ("field", "message", "hint", "rule")})


def query(parameters: Mapping[str, Parameter]) -> str:
    """Write query parameters as the API reads them: true and false, whole numbers, instants in UTC.

    A datetime without a zone is of this machine's.
    """
    given = {key: _written(value) for key, value in parameters.items() if value is not None}
    return f"?{urlencode(given, quote_via=quote, safe='')}" if given else ""


def _written(value: str | bool | int | datetime) -> str:  # noqa: FBT001  any of them
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return str(value)


def path_name(name: str) -> str:
    """Check a name for use in a path: job names need no encoding.

    Anything else must not become another path.
    """
    if not _JOB_NAME.fullmatch(name):
        shown = repr(name if len(name) <= _SHOWN else f"{name[:_SHOWN]}...")
        raise InvalidArgumentError(
            f"{shown} is not a job name.", hint="Names are 1 to 63 letters, digits and inner hyphens."
        )
    return name


def _problem(answer: Answer, document: Document) -> Problem:
    """Read a problem document, or the gateway's own ``{"message": ...}``."""
    detail = document.get("detail") or document.get("message") or document.get("Message")
    errors = document.get("errors")
    entries = errors if isinstance(errors, list) else []
    return Problem(
        status=answer.status,
        title=shown(document.get("title")) or "The API refused",
        detail=shown(detail) or _description(answer),
        errors=tuple(field_problem(entry) for entry in entries[:_MOST_ERRORS] if isinstance(entry, dict)),
        retry_after=shown(answer.headers.get("retry-after")),
        kind=kind_of(document),
    )


def _description(answer: Answer) -> str:
    kind = answer.headers.get("content-type", "no content type")
    where = answer.headers.get("location")
    redirect = f", a redirect to {shown(where)[:200]}" if where else ""
    return f"status {answer.status} with {shown(kind)[:200]}, {len(answer.body)} bytes{redirect}"
