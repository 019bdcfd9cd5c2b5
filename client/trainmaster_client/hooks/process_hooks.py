"""A process that asked for the queue: each session of botocore is hooked, made before or later.

botocore calls an initializer with each session that is made. Sessions and clients that are there already are
found among the objects that Python knows. A CreateTrainingJob that none of our hooks saw, as of a client
that could not be found, warns before it leaves.

``trainmaster run`` begins here before the program has imported botocore: keep the imports small.
"""

import gc
import json
import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, MutableMapping
from functools import wraps
from pathlib import Path
from typing import Any

import botocore

from trainmaster_client.bypasses import QueueBypassWarning
from trainmaster_client.hooks.hooked_events import HOOKED_SERVICES, PLAIN_CLIENTS, SEEN
from trainmaster_client.hooks.session_hooks import (
    ProcessOptions,
    credentials_of,
    hooks_of_client,
    hooks_of_session,
)

RUN_VARIABLE = "TRAINMASTER_RUN"
"""Set by ``trainmaster run`` for its program and its children: what to do where the API gives no answer."""
STARTUP = Path(__file__).with_name("startup")
"""Holds a ``sitecustomize``, which Python imports before a program where PYTHONPATH names this folder."""


_CLIENTS = (("botocore.client", "BaseClient"), ("aiobotocore.client", "AioBaseClient"))
_SEND = "_make_request"
"""What both call for what no handler answered."""


class ProcessHooks:
    """What this process asks for. There is one, ``PROCESS``."""

    def __init__(self) -> None:
        self._options: ProcessOptions | None = None
        self._is_registered = False
        self._guards: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        """By class of clients: how it sends, and what we put in that place."""
        self._changing = threading.RLock()

    def switch_on(self, options: ProcessOptions) -> None:
        """For sessions that are made from now on. Said again, the last time counts, for all of them."""
        with self._changing:
            self._options = options
            if not self._is_registered:
                botocore.register_initializer(self._hook)
                self._is_registered = True

    def hook_existing(self) -> None:
        """Sessions and clients that were made before. Those that have hooks keep them."""
        self._guard()
        sessions, clients = _made_before()
        hooks = [hooks_of_session(one, self._wanted) for one in sessions]
        by_credentials = {}
        for session, its_hooks in zip(sessions, hooks, strict=True):
            its_hooks.register(session.get_component("event_emitter"))
            by_credentials[id(session._credentials)] = its_hooks  # noqa: SLF001  contract tests watch it
        for client in clients:
            credentials = credentials_of(client)
            known = None if credentials is None else by_credentials.get(id(credentials))
            (known or hooks_of_client(client, self._wanted)).register(client.meta.events)

    def switch_off(self) -> None:
        """As if the process had never asked; sessions and clients that were hooked by name stay so."""
        with self._changing:
            self._options = None
            if self._is_registered:
                botocore.unregister_initializer(self._hook)
                self._is_registered = False
            for kind, (original, ours) in tuple(self._guards.items()):
                if kind.__dict__[_SEND] is ours:  # else somebody has wrapped it since; ours is idle there
                    setattr(kind, _SEND, original)
                    del self._guards[kind]

    def _wanted(self) -> ProcessOptions | None:
        return self._options

    def _hook(self, session: Any) -> None:  # noqa: ANN401  botocore's, which is about to be ready
        hooks_of_session(session, self._wanted).register(session.get_component("event_emitter"))
        self._guard()

    def _guard(self) -> None:
        with self._changing:
            for module, name in _CLIENTS:
                kind = getattr(sys.modules.get(module), name, None)
                if kind is not None and kind not in self._guards:
                    original = kind.__dict__[_SEND]
                    self._guards[kind] = original, self._guarded(original)
                    setattr(kind, _SEND, self._guards[kind][1])

    def _guarded(self, send: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(send)
        def send_or_warn(
            client: Any,  # noqa: ANN401  botocore's
            operation_model: Any,  # noqa: ANN401  botocore's
            request_dict: MutableMapping[str, Any],
            request_context: MutableMapping[str, Any],
        ) -> Any:  # noqa: ANN401  botocore's, or something to wait for
            if operation_model.name == "CreateTrainingJob" and SEEN not in request_context and self._options:
                _warn_of(request_dict)
            return send(client, operation_model, request_dict, request_context)

        return send_or_warn


PROCESS = ProcessHooks()


def switch_on_from_environment() -> None:
    """What ``trainmaster run`` asked for. Raises nothing: the program comes first."""
    wanted = os.environ.get(RUN_VARIABLE)
    if wanted in {"raise", "direct"}:
        on_unreachable: Any = wanted
        PROCESS.switch_on(ProcessOptions(api_url=None, on_unreachable=on_unreachable))


def environment_of_run(
    environment: Mapping[str, str], *, api_url: str, on_unreachable: str
) -> dict[str, str]:
    """What makes a Python program, and those it starts, begin with the hooks."""
    paths = [str(STARTUP), *(one for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one)]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
        "TRAINMASTER_API_URL": api_url,
        RUN_VARIABLE: on_unreachable,
    }


def _warn_of(request: MutableMapping[str, Any]) -> None:
    try:
        name = json.loads(request["body"])["TrainingJobName"]
    except (KeyError, TypeError, ValueError):
        name = "A training job"
    message = (
        f"{name} bypasses trainmaster's queue: the process asked for it, but the client has no hooks. "
        "Make the client after install(), or hook it with install_on_client()."
    )
    warnings.warn(message, QueueBypassWarning, stacklevel=5)


def _made_before() -> tuple[list[Any], list[Any]]:
    """Sessions, and clients of services that we hook.

    Of an object only its type is looked at: it may be a proxy that does things when it is asked.
    """
    session_kind = getattr(sys.modules.get("botocore.session"), "Session", None)
    client_kind = getattr(sys.modules.get("botocore.client"), "BaseClient", None)
    sessions, clients = _default_session(), []
    for one in gc.get_objects():
        kind = type(one)
        if session_kind is not None and issubclass(kind, session_kind):
            sessions.append(one)
        elif client_kind is not None and issubclass(kind, client_kind) and _is_hookable(one):
            clients.append(one)
    return list({id(one): one for one in sessions if _is_whole(one)}.values()), clients


def _default_session() -> list[Any]:
    """boto3's, which gc does not show once a program has frozen its objects."""
    default = getattr(sys.modules.get("boto3"), "DEFAULT_SESSION", None)
    return [default._session] if default is not None else []  # noqa: SLF001  contract tests watch it


def _is_whole(session: Any) -> bool:  # noqa: ANN401  botocore's
    """False for one that another thread is making: botocore tells of it when it is ready."""
    return "session_var_map" in session.__dict__


def _is_hookable(client: Any) -> bool:  # noqa: ANN401  botocore's
    meta = client.__dict__.get("meta")
    return (
        meta is not None
        and meta.service_model.service_name in HOOKED_SERVICES
        and client not in PLAIN_CLIENTS
    )
