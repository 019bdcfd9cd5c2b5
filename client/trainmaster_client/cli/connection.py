"""The API client of a command, from the environment; and names of jobs for suggestions and shells."""

import difflib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError

from trainmaster_client.api import ApiClient, Document, find_api_url
from trainmaster_client.cli.screen import busy
from trainmaster_client.errors import CredentialsError, NotFoundError, TrainmasterClientError
from trainmaster_client.http.rate_limits import ONCE_A_PROCESS
from trainmaster_client.jobs.array_views import is_about_array
from trainmaster_client.jobs.job_views import FINAL_STATES

LARGEST_PAGE = "100"
"""Jobs; the most the API gives at once."""
SUGGESTIONS = 3

COMPLETION_SECONDS = 1.5
"""Somebody waits with a finger on the tab key."""


class CommandApi(ApiClient):
    """Says on a terminal what takes long, and names the jobs that a mistyped name may have meant.

    Args:
        is_quiet: Says nothing: something else is painted on the terminal.
        options: The API client's.
    """

    def __init__(self, *options: Any, is_quiet: bool = False) -> None:  # noqa: ANN401  as they are
        super().__init__(*options, say=_silent if is_quiet else ONCE_A_PROCESS)
        self._is_quiet = is_quiet

    def job(self, name: str, **options: bool) -> Document:
        with self._with_suggestions(name):
            return super().job(name, **options)

    def change(self, name: str, **changes: Any) -> Document:  # noqa: ANN401  as they are
        with self._with_suggestions(name):
            return super().change(name, **changes)

    def cancel(self, name: str) -> Document:
        with self._with_suggestions(name):
            return super().cancel(name)

    def _call(self, method: str, path: str, *arguments: Any, **options: Any) -> Document:  # noqa: ANN401  as they are
        with nullcontext() if self._is_quiet else busy("Waiting for the API"):
            return super()._call(method, path, *arguments, **options)

    @contextmanager
    def _with_suggestions(self, name: str) -> Iterator[None]:
        try:
            yield
        except NotFoundError as error:
            if not is_about_array(error) and (near := self._near(name)):
                error.add_note(f"Did you mean {' or '.join(near)}?")
            raise

    def _near(self, name: str) -> list[str]:
        """Suggest names of jobs in the queue; if none is near, names of jobs that are over."""
        for states in ((None,), sorted(FINAL_STATES)):
            names = [known for state in states for known in visible_names(self, state)]
            if near := difflib.get_close_matches(name, names, n=SUGGESTIONS):
                return near
        return []


def _silent(_: str) -> None:
    """Report nothing: a line would be painted over what is on the screen."""


def connect(*, quiet: bool = False) -> CommandApi:
    session = aws_session()
    return CommandApi(find_api_url(None, session), session, is_quiet=quiet)


def aws_session() -> boto3.Session:
    try:
        return boto3.Session()
    except BotoCoreError as error:  # AWS_PROFILE names a profile that does not exist
        raise CredentialsError(f"{error}.") from error


def aws_client(service: str) -> Any:  # noqa: ANN401  boto3 makes its clients at run time
    try:
        return aws_session().client(service)  # type: ignore[call-overload]
    except (BotoCoreError, ValueError) as error:  # a region, or an AWS_ENDPOINT_URL, that is none
        raise CredentialsError(f"{error}.") from error


def visible_names(api: ApiClient, state: str | None = None) -> list[str]:
    """Return names of the first jobs that have one, for suggestions; empty if the API does not answer."""
    try:
        jobs = api.jobs(limit=LARGEST_PAGE, state=state).get("jobs") or ()
        return [str(job["name"]) for job in jobs if job.get("name")]
    except (TrainmasterClientError, KeyError, TypeError, AttributeError):
        return []


def complete_job(incomplete: str) -> list[str]:
    return completed(incomplete, visible_names)


def completed(incomplete: str, look: Callable[[CommandApi], list[str]]) -> list[str]:
    """Return the names that begin with ``incomplete``; none if the API does not answer in time."""
    names: list[str] = []

    def ask() -> None:
        logging.disable()
        with suppress(Exception):  # whatever is wrong here, a prompt is no place to say it
            names.extend(look(connect()))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(COMPLETION_SECONDS)
    return [name for name in dict.fromkeys(names) if name.startswith(incomplete)]
