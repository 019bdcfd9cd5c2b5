"""The gateway as a process: its parts put together, its socket, its files, from start to end."""

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import boto3
import uvicorn
from botocore.credentials import Credentials
from starlette.routing import BaseRoute
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from trainmaster_client.api import find_api_url
from trainmaster_client.errors import InvalidArgumentError, TrainmasterClientError
from trainmaster_client.gateway import gateway_files
from trainmaster_client.gateway.call_counts import CallCounts
from trainmaster_client.gateway.credential_chain import RenewedCredentials, usual_chain
from trainmaster_client.gateway.gateway_files import GatewayOptions, GatewayState
from trainmaster_client.gateway.page_admission import FRAGMENT_NAME, PageKeys
from trainmaster_client.gateway.passed_calls import SageMakerEndpoint, sagemaker_url
from trainmaster_client.gateway.queued_calls import QueuedCalls, RenewingApi
from trainmaster_client.gateway.web_app import Gateway, application
from trainmaster_client.gateway.web_pages import AnyPrefix, OwnPagesAlone, Pages
from trainmaster_client.hooks.botocore_events import signing_with
from trainmaster_client.hooks.training_job_calls import QueueHooks

LOOPBACK = "127.0.0.1"
_WAITING_CONNECTIONS = 512
_END_SECONDS = 5
"""Seconds for calls under way when the gateway has to end."""
_IDLE_SECONDS = 75
"""Longer than clients keep a connection they do not use (botocore: urllib3's, until it is closed)."""
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)
"""Socket option of Linux; None elsewhere. Without it a call on a kept connection takes 40 ms more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """One stack's queue and SageMaker behind it, as one caller sees them."""

    api_url: str
    region: str
    credentials: RenewedCredentials
    endpoint: SageMakerEndpoint
    calls: QueuedCalls
    api: RenewingApi
    session: boto3.Session
    """Signs with these credentials."""
    proxies: frozenset[str] = frozenset()
    """Host names, in lower case, under which proxies of the user show the pages."""


def assembled(
    env: Mapping[str, str] = os.environ, load: Callable[[], Credentials | None] = usual_chain
) -> Parts:
    """Put the parts together; ``load`` walks the chain of credentials.

    Raises ApiNotConfiguredError, InvalidApiUrlError and CredentialsError.
    """
    credentials = RenewedCredentials(load)
    session = signing_with(lambda: credentials, region=env.get("AWS_DEFAULT_REGION") or None)
    api = RenewingApi(find_api_url(None, session, env), session)
    api.credentials = credentials
    url = sagemaker_url(session, region=api.region, env=env)
    endpoint = SageMakerEndpoint(url, credentials, region=api.region)
    calls = QueuedCalls(QueueHooks(session, api), endpoint, credentials)
    return Parts(
        api_url=api.api_url,
        region=api.region,
        credentials=credentials,
        endpoint=endpoint,
        calls=calls,
        api=api,
        session=session,
    )


MorePages: TypeAlias = Callable[[Pages], Iterable[BaseRoute]]
"""Makes further routes below ``/ui/``, which are admitted by the rules of the pages."""


def no_pages(_: Pages) -> Iterable[BaseRoute]:
    return ()


def application_of(
    parts: Parts, *, port: int, token: str, are_changes_allowed: bool, more_pages: MorePages = no_pages
) -> tuple[ASGIApp, str]:
    """Return the application, and a URL that opens its pages once."""

    def describe() -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "api_url": parts.api_url,
            "region": parts.region,
            "sagemaker_url": parts.endpoint.url,
            "credentials": _credentials_said(parts.credentials),
            "memory_mb": resident_mb(),
        }

    def ui_url() -> str:
        return f"http://{LOOPBACK}:{port}/ui/#{FRAGMENT_NAME}={keys.one_time()}"

    keys, counts = PageKeys(token=token), CallCounts()
    pages = Pages(
        keys=keys, api=parts.api, are_changes_allowed=are_changes_allowed, describe=describe, counts=counts
    )
    gateway = Gateway(
        token=token,
        calls=parts.calls,
        credentials=parts.credentials,
        region=parts.region,
        describe=describe,
        counts=counts,
        ui_url=ui_url,
    )
    routes = (*pages.routes(), *more_pages(pages))
    walled = OwnPagesAlone(application(gateway, pages=routes), proxies=parts.proxies)
    return AnyPrefix(walled, port=port), ui_url()


def run(
    options: GatewayOptions,
    *,
    started: Callable[[GatewayState, str], None],
    more_pages: Callable[[Parts], MorePages],
) -> None:
    """Run the gateway until a signal ends it.

    ``started`` is called with its state and the URL of its pages once it answers. A gateway that is killed
    leaves its state file, so that one started again is found under the same URL.
    """
    port, ready, folder = options.port, options.ready, options.folder
    if ready is not None:
        ready.unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, _end)  # uvicorn ends its calls, then raises the signal once more
    parts = replace(assembled(), proxies=options.proxies)
    with ExitStack() as until_the_end:
        listening = until_the_end.enter_context(listening_on(port))
        taken = listening.getsockname()[1]
        token = gateway_files.token_for(taken, api_url=parts.api_url, folder=folder)
        state = GatewayState(pid=os.getpid(), port=taken, token=token, api_url=parts.api_url)
        file = gateway_files.write_state(state, folder=folder)
        if port == 0:
            until_the_end.callback(file.unlink, missing_ok=True)
        app, ui_url = application_of(
            parts,
            port=taken,
            token=token,
            are_changes_allowed=options.are_changes_allowed,
            more_pages=more_pages(parts),
        )
        if ready is not None:
            document = {"pid": state.pid, "endpoint_url": state.endpoint_url, "ui_url": ui_url}
            gateway_files.write_ready(ready, document)
            until_the_end.callback(ready.unlink, missing_ok=True)
        started(state, ui_url)
        server_of(app).run(sockets=[listening])


def server_of(app: ASGIApp) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        http=_AtOnce,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_END_SECONDS,
    )
    return uvicorn.Server(config)


def _end(*_: object) -> None:
    """Exit by an exception, so that the files are removed."""
    raise SystemExit(0)


class _AtOnce(H11Protocol):
    """Acknowledges data at once: clients hold a body back until its headers are acknowledged."""

    def data_received(self, data: bytes) -> None:
        sock = self.transport.get_extra_info("socket")
        if sock is not None and _QUICK_ACK is not None:  # it must be said for each, and flushes what is held
            sock.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)
        super().data_received(data)


def listening_on(port: int) -> socket.socket:
    """Return a listening socket. Raises InvalidArgumentError if another process has the port."""
    # asyncio sends without delay only where the protocol is named
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise InvalidArgumentError(
            f"Port {port} cannot be used ({error}).",
            hint="If a gateway runs there, --print-env prints its URL; else choose another one with --port.",
        ) from error
    listening.listen(_WAITING_CONNECTIONS)
    return listening


def _credentials_said(credentials: RenewedCredentials) -> str:
    try:
        return f"access key ...{(credentials.get_frozen_credentials().access_key or '')[-4:]}"
    except TrainmasterClientError as error:
        return str(error)


def resident_mb() -> float:
    """Return the most memory that this process ever had, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(most / (1024 * 1024 if sys.platform == "darwin" else 1024), 1)
