"""Hook every session of botocore in a process that asked for the queue, made before or later.

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
"""Set by ``trainmaster run`` for its program and its children: the ``on_unreachable`` option of the hooks."""
STARTUP = Path(__file__).with_name("startup")
"""Folder with a ``sitecustomize``, which Python imports before a program if PYTHONPATH names the folder."""


_CLIENTS = (("botocore.client", "BaseClient"), ("aiobotocore.client", "AioBaseClient"))
_SEND = "_make_request"
"""Method that both client classes call to send a request that no handler answered."""


class ProcessHooks:
    """The hooks of this process, switched on and off. There is one, ``PROCESS``."""

    def __init__(self) -> None:
        self._options: ProcessOptions | None = None
        self._is_registered = False
        self._guards: dict[type, tuple[Callable[..., Any], Callable[..., Any]]] = {}
        """Send method of each class of clients: the original, and ours that replaces it."""
        self._changing = threading.RLock()

    def switch_on(self, options: ProcessOptions) -> None:
        """Hook sessions that are made from now on. The last call's options count, for all sessions."""
        with self._changing:
            self._options = options
            if not self._is_registered:
                botocore.register_initializer(self._hook)
                self._is_registered = True

    def hook_existing(self) -> None:
        """Hook sessions and clients that were made before. Those that have hooks keep them."""
        self._guard()
        sessions, clients = _made_before()
        hooks = [hooks_of_session(session, self._wanted) for session in sessions]
        by_credentials = {}
        for session, its_hooks in zip(sessions, hooks, strict=True):
            its_hooks.register(session.get_component("event_emitter"))
            by_credentials[id(session._credentials)] = its_hooks  # noqa: SLF001  contract tests watch it
        for client in clients:
            credentials = credentials_of(client)
            known = None if credentials is None else by_credentials.get(id(credentials))
            (known or hooks_of_client(client, self._wanted)).register(client.meta.events)

    def switch_off(self) -> None:
        """Undo ``switch_on``; sessions and clients that were hooked by name stay hooked."""
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
    """Switch the hooks on if ``trainmaster run`` asked for it. Raises nothing: the program comes first."""
    wanted = os.environ.get(RUN_VARIABLE)
    if wanted in {"raise", "direct"}:
        on_unreachable: Any = wanted
        PROCESS.switch_on(ProcessOptions(api_url=None, on_unreachable=on_unreachable))


def environment_of_run(
    environment: Mapping[str, str], *, api_url: str, on_unreachable: str
) -> dict[str, str]:
    """Return environment variables with which a Python program, and those it starts, begin with the hooks."""
    paths = [str(STARTUP), *(path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path)]
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
    """Find sessions, and clients of services that we hook, that exist already.

    Only the type of an object is looked at: it may be a proxy that does things when it is asked.
    """
    session_kind = getattr(sys.modules.get("botocore.session"), "Session", None)
    client_kind = getattr(sys.modules.get("botocore.client"), "BaseClient", None)
    sessions, clients = _default_session(), []
    for candidate in gc.get_objects():
        kind = type(candidate)
        if session_kind is not None and issubclass(kind, session_kind):
            sessions.append(candidate)
        elif client_kind is not None and issubclass(kind, client_kind) and _is_hookable(candidate):
            clients.append(candidate)
    return list({id(session): session for session in sessions if _is_whole(session)}.values()), clients


def _default_session() -> list[Any]:
    """Return boto3's default session, which gc does not show once a program has frozen its objects."""
    default = getattr(sys.modules.get("boto3"), "DEFAULT_SESSION", None)
    return [default._session] if default is not None else []  # noqa: SLF001  contract tests watch it


def _is_whole(session: Any) -> bool:  # noqa: ANN401  botocore's
    """Tell whether a session is complete; botocore reports one that is still being made when it is ready."""
    return "session_var_map" in session.__dict__


def _is_hookable(client: Any) -> bool:  # noqa: ANN401  botocore's
    meta = client.__dict__.get("meta")
    return (
        meta is not None
        and meta.service_model.service_name in HOOKED_SERVICES
        and client not in PLAIN_CLIENTS
    )
