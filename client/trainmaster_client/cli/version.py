"""``trainmaster --version``: of this client, and with ``--json`` of the stack that answers it."""

from importlib import metadata

from trainmaster_client.cli.connection import aws_session
from trainmaster_client.cli.screen import print_json
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.http.answers import VERSION_HEADER
from trainmaster_client.http.location import find_api_url
from trainmaster_client.http.transport import SignedTransport

NOT_INSTALLED = "unknown"
"""The code is on the path, but never was installed as a package."""


def print_version(*, as_json: bool) -> None:
    if as_json:
        print_json({"client": client_version(), "stack": _stack_version()})
    else:
        print(f"trainmaster {client_version()}")


def client_version() -> str:
    try:
        return metadata.version("trainmaster")
    except metadata.PackageNotFoundError:
        return NOT_INSTALLED


def _stack_version() -> str | None:
    """None: no answer, or none that names a version."""
    try:
        session = aws_session()
        answer = SignedTransport(find_api_url(None, session), session).send("GET", "/pools")
    except TrainmasterClientError:
        return None
    return answer.headers.get(VERSION_HEADER)
