"""trainmaster's REST API: where it is, and one method a route."""

import os
import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.errors import ApiNotConfiguredError, PolicyViolationError
from trainmaster_client.http.array_routes import ArrayRoutes
from trainmaster_client.http.calls import (
    Document,
    Parameter,
    etag_of,
    field_problem,
    path_name,
    query,
    request_id_of,
)
from trainmaster_client.http.transport import ATTEMPTS

__all__ = [
    "API_URL_PARAMETER",
    "API_URL_VARIABLE",
    "ApiClient",
    "Document",
    "etag_of",
    "field_problem",
    "find_api_url",
    "request_id_of",
]

API_URL_VARIABLE = "TRAINMASTER_API_URL"
API_URL_PARAMETER = "/trainmaster/api-url"

KEY_HEADER = "idempotency-key"
LONGEST_KEY = 128
"""Characters, of printable ASCII."""

Instant: TypeAlias = str | datetime
"""ISO 8601 in UTC, or a datetime; without a zone that is of this machine's."""

_JSON_LINES = "application/x-ndjson"

_SSM_CONFIG = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
"""Seconds. Off the network the answer is an error within seconds, not minutes."""


class ApiClient(ArrayRoutes):
    """Calls the API, by one method a route. Parameters that are None are left out."""

    def add_job(self, request: Mapping[str, Any], *, key: str | None = None) -> Document:
        """Queue a CreateTrainingJob request, sent as it is.

        A lost answer is asked for again with the key of the submission, by which the server knows it from a
        later one under the same name.

        Args:
            request: As boto3 takes it.
            key: Of this submission, 1 to 128 printable ASCII characters, the same whenever it is repeated.
                None: a new one for each call. Empty: none is sent, and the server counts a minute instead.

        Raises:
            ConflictError: A job has the name: another request's, or one that has ended.
        """
        headers = _with_key(new_key() if key is None else key)
        return self._call("POST", "/add-job", request, attempts=ATTEMPTS, headers=headers)

    def try_job(self, request: Mapping[str, Any], *, team: str | None = None) -> Document:
        """Ask what would become of a new submission: violations, place, likely start. Stores nothing.

        ``team``: as if somebody of it had asked; for admins.
        """
        parameters = query({"dry_run": True, "team": team})
        headers = _with_key(new_key())
        return self._call("POST", f"/add-job{parameters}", request, attempts=ATTEMPTS, headers=headers)

    def job(self, name: str, *, estimate: bool = True, request: bool = False) -> Document:
        """Return one job; without an estimate of its start the answer costs the server next to nothing.

        With ``request`` also the CreateTrainingJob request as it was submitted.
        """
        parameters = {"estimate": None if estimate else False, "request": request or None}
        return self._read(f"/jobs/{path_name(name)}{query(parameters)}")

    def jobs(self, **filters: Parameter) -> Document:
        """Return one page. ``filters`` are the query parameters of docs/api.md, such as ``mine=True``."""
        return self._read(f"/jobs{query(filters)}")

    def jobs_unless(self, etag: str, **filters: Parameter) -> Document | None:
        """Return one page; None if no stored field changed since the page that had this ``etag_of``."""
        return self._read_unless(etag, f"/jobs{query(filters)}")

    def change(
        self, name: str, *, priority: int | None = None, held: bool | None = None, after: str | None = None
    ) -> Document:
        """Change a job; a repeated change is the same, so a lost answer is asked for again.

        Args:
            name: Of the job, or of any of its attempts.
            priority: 0 to 1000.
            held: Whether it is to be held.
            after: Conditions separated by a space; an empty text: it is to wait for no job.
        """
        wanted: dict[str, Any] = {"priority": priority, "held": held}
        given = {key: value for key, value in wanted.items() if value is not None}
        conditions = {} if after is None else {"after": after or None}
        return self._call("PATCH", f"/jobs/{path_name(name)}", given | conditions, attempts=ATTEMPTS)

    def cancel(self, name: str) -> Document:
        return self._call("DELETE", f"/jobs/{path_name(name)}")

    def pools(self, *, sharing: bool = False) -> Document:
        """Return all pools, however many answers that takes.

        Args:
            sharing: Whether each says which jobs could use each other's warm pools.
        """
        return self._whole("/pools", {"sharing": "true" if sharing else None}, "pools")

    def usage(self, *, team: str | None = None, month: str | None = None) -> Document:
        """Return the usage of one team and month; by default the caller's only team and this month."""
        return self._whole("/usage", {"team": team, "month": month}, "jobs", "preemptions")

    def usage_by(
        self,
        group_by: str,
        *,
        team: str | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
    ) -> Document:
        """Use and money of a time by team, user, job, day or model_name; ``team`` "*": all, for admins."""
        return self._whole("/usage", _grouped(group_by, team, start, end), "groups")

    def usage_csv(
        self,
        group_by: str,
        *,
        team: str | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
    ) -> str:
        """Return the usage as CSV, with a head line."""
        return self._whole_csv("/usage", _grouped(group_by, team, start, end))

    def me(self) -> Document:
        """Return the API's view of the caller: identity, teams and what bounds them."""
        return self._read("/me")

    def rules(self) -> Document:
        """Return the part of the policy that binds the caller."""
        return self._read("/rules")

    def estimates(self, *, pool: str | None = None) -> Document:
        """Estimate when the waiting jobs start, all at once; ``truncated`` is set if time ran out."""
        return self._read(f"/estimates{query({'pool': pool})}")

    def timeline(
        self, *, pool: str | None = None, start: Instant | None = None, end: Instant | None = None
    ) -> Document:
        """Return attempts, capacity and warm pools of a time, by default the last 24 hours; all pages."""
        parameters = {"pool": pool, "from": start, "to": end}
        return self._whole("/timeline", parameters, "attempts", "capacity", "warm", "ahead")

    def pool_history(
        self,
        *,
        pool: str | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
        step: int | None = None,
    ) -> Document:
        """Return means of used, warm, capacity and waiting over steps of ``step`` seconds."""
        parameters = {"pool": pool, "from": start, "to": end, "step": step}
        return self._read(f"/pools/history{query(parameters)}")

    def events(
        self,
        *,
        since: Instant | None = None,
        team: str | None = None,
        kind: str | None = None,
        next_token: str | None = None,
    ) -> Document:
        """Return one page of events, the oldest first."""
        parameters = {"since": since, "team": team, "kind": kind, "next_token": next_token}
        return self._read(f"/events{query(parameters)}")

    def history_page(
        self, *, start: Instant, end: Instant, next_token: str | None = None
    ) -> tuple[str, str | None]:
        """Return up to 500 jobs of a period with attempts, as lines of JSON, and the next page's token.

        For admins; a period has at most 31 days. The token is None on the last page.
        """
        parameters = {"from": start, "to": end, "next_token": next_token}
        page, token = self._text_page("/history/export", parameters, _JSON_LINES)
        return page, None if token in {"", next_token} else token

    def violations(self, *, month: str | None = None, next_token: str | None = None) -> Document:
        """Return one page of a month's violations; by default of this month."""
        return self._read(f"/violations{query({'month': month, 'next_token': next_token})}")

    def policy(self, revision: int | None = None) -> Document:
        """Return the policy in force, or an earlier revision of it."""
        return self._read("/policy" if revision is None else f"/policy?revision={revision}")

    def put_policy(self, policy: Mapping[str, Any], *, text: str | None = None) -> Document:
        """Store a policy; ``text`` is what it was written as, kept beside it if the API keeps texts."""
        if text is not None:
            try:
                return self._call("PUT", "/policy", {"policy": policy, "text": text})
            except PolicyViolationError as error:
                if not {"policy", "text"} <= {error.field for error in error.problem.errors}:
                    raise  # else an API that knows no texts took both for unknown keys
        return self._call("PUT", "/policy", policy)

    def try_policy(self, policy: Mapping[str, Any]) -> Document:
        """Return the answer a put would give, with its effects on jobs in ``changes``. Changes nothing."""
        return self._call("PUT", "/policy?dry_run=true", policy, attempts=ATTEMPTS)

    def set_paused(self, paused: bool) -> Document:  # noqa: FBT001  as in the API
        """Pause or resume all starts; a repeated call is the same, so a lost answer is asked for again."""
        return self._call("PUT", "/policy/paused", {"paused": paused}, attempts=ATTEMPTS)

    def repair(self) -> Document:
        """Return how far the newest count of the table is, and what it found."""
        return self._read("/repair")

    def start_repair(self, *, apply: bool) -> Document:
        """Start a count of the table; a repeated call joins it, so a lost answer is asked for again."""
        return self._call("POST", "/repair", {"apply": apply}, attempts=ATTEMPTS)


def new_key() -> str:
    """Make the key of a submission that is not a repetition."""
    return str(uuid.uuid4())


def _with_key(key: str) -> dict[str, str]:
    return {KEY_HEADER: key} if key else {}


def _grouped(
    group_by: str, team: str | None, start: Instant | None, end: Instant | None
) -> dict[str, Parameter]:
    return {"group_by": group_by, "team": team, "from": start, "to": end}


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
