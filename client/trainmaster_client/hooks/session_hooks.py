"""The hooks of one session, or of one client, in a process whose every session queues.

They are registered before the session has its region and keys, and before the program has imported boto3.
So nothing of it is looked at, and little is imported, before the first call that concerns training. Such a
call follows the options of the process at that moment: it may have installed again, or uninstalled.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.hooks.hooked_events import HOOKED_EVENTS, QUEUED_EVENTS, SEEN, handler_id

if TYPE_CHECKING:
    import boto3

    from trainmaster_client.hooks.training_job_calls import OnUnreachable

_Handlers: TypeAlias = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """The options of a process that asked for the queue."""

    api_url: str | None
    """URL of the API; None: read from the environment or the SSM parameter when it is first needed."""
    on_unreachable: "OnUnreachable" = "raise"


class Caller(Protocol):
    """The session or client whose calls are hooked."""

    def boto_session(self, region: str) -> "boto3.Session":
        """Return the session that signs calls to the queue and AWS; ``region`` is used if it has none."""


class AsyncCaller(Caller, Protocol):
    async def lend(self) -> None:
        """Fetch the caller's credentials as they are now, for the session that calls on its behalf."""


class SessionHooks:
    """Handlers for the events of one caller. Threads and forked processes may share them.

    Args:
        caller: The session or client whose events they handle.
        wanted: Returns the options of the process now; None once it uninstalled the hooks.
    """

    def __init__(self, caller: Caller, wanted: Callable[[], ProcessOptions | None]) -> None:
        self._caller = caller
        self._wanted = wanted
        self._made: tuple[ProcessOptions, _Handlers] | None = None
        self._making = threading.Lock()

    def register(self, events: Any) -> None:  # noqa: ANN401  botocore's emitters
        """Register the handlers, unless ours are there already: botocore keeps the first handler of an id."""
        for event in HOOKED_EVENTS:
            events.register(event, self._handler(event), unique_id=handler_id(event))

    def _handler(self, event: str) -> Callable[..., Any]:
        def handle(**details: Any) -> Any:  # noqa: ANN401  botocore's
            return self._answer(event, details)

        return handle

    def _answer(self, event: str, details: dict[str, Any]) -> Any:  # noqa: ANN401  the handler's
        """Answer the call; None if it goes on to AWS."""
        options = self._wanted()
        if options is None:
            return None
        try:
            handlers = self._handlers(options, details["context"]["client_region"])
        except ImportError:  # a program with botocore and without boto3; its CreateTrainingJob warns
            return None
        except TrainmasterClientError as error:
            if event not in QUEUED_EVENTS:
                return None
            details["context"][SEEN] = True
            return _refused(error)
        return handlers[event](**details)

    def _handlers(self, options: ProcessOptions, region: str) -> _Handlers:
        with self._making:
            if self._made is None or self._made[0] != options:
                from trainmaster_client.hooks.training_job_calls import hooks_of  # noqa: PLC0415  needs boto3

                session = self._caller.boto_session(region)
                hooks = hooks_of(session, api_url=options.api_url, on_unreachable=options.on_unreachable)
                self._made = options, dict(hooks.handlers())
            return self._made[1]


class AsyncSessionHooks(SessionHooks):
    """The hooks of an aiobotocore session: the event loop continues while a thread calls the queue."""

    def __init__(self, caller: AsyncCaller, wanted: Callable[[], ProcessOptions | None]) -> None:
        super().__init__(caller, wanted)
        self._async_caller = caller

    def _handler(self, event: str) -> Callable[..., Any]:
        async def handle(**details: Any) -> Any:  # noqa: ANN401  botocore's
            if self._wanted() is None:
                return None
            import asyncio  # noqa: PLC0415  where this runs it is there; elsewhere it takes 30 ms

            await self._async_caller.lend()
            try:
                asyncio.get_running_loop()
            except RuntimeError:  # another kind of loop, under aiobotocore's httpx
                return self._answer(event, details)
            return await asyncio.to_thread(self._answer, event, details)

        return handle


def hooks_of_session(session: Any, wanted: Callable[[], ProcessOptions | None]) -> SessionHooks:  # noqa: ANN401
    """Make the hooks of a botocore or aiobotocore ``session``."""
    if iscoroutinefunction(type(session).get_credentials):
        return AsyncSessionHooks(_AsyncCaller(session.get_credentials, session), wanted)
    return SessionHooks(_Session(session), wanted)


def hooks_of_client(client: Any, wanted: Callable[[], ProcessOptions | None]) -> SessionHooks:  # noqa: ANN401
    """Make the hooks of a ``client`` whose session is not known: the queue is called with its credentials."""
    if iscoroutinefunction(type(client)._make_api_call):  # noqa: SLF001  contract tests watch botocore's
        return AsyncSessionHooks(_AsyncCaller(lambda: credentials_of(client)), wanted)
    return SessionHooks(_Client(client), wanted)


def credentials_of(client: Any) -> Any:  # noqa: ANN401  botocore's
    """Return the credentials it signs with: its session's object, unless the client has keys of its own."""
    return client._request_signer._credentials  # noqa: SLF001  likewise


@dataclass(frozen=True, slots=True)
class _Session:
    session: Any

    def boto_session(self, region: str) -> "boto3.Session":
        from trainmaster_client.hooks.botocore_events import SessionOf  # noqa: PLC0415  needs boto3

        return SessionOf(self.session, region=region)


@dataclass(frozen=True, slots=True)
class _Client:
    client: Any

    def boto_session(self, region: str) -> "boto3.Session":
        from trainmaster_client.hooks.botocore_events import signing_with  # noqa: PLC0415  needs boto3

        return signing_with(lambda: credentials_of(self.client), region=region)


class _AsyncCaller:
    """A caller whose credentials are awaited; the session that calls on its behalf has their last value."""

    def __init__(self, load: Callable[[], Any], session: Any = None) -> None:  # noqa: ANN401  aiobotocore's
        self._load = load
        self._session = session
        self._frozen: Any = None

    async def lend(self) -> None:
        loaded = self._load()
        credentials = await loaded if isawaitable(loaded) else loaded
        frozen = None if credentials is None else credentials.get_frozen_credentials()
        self._frozen = await frozen if isawaitable(frozen) else frozen

    def boto_session(self, region: str) -> "boto3.Session":
        from trainmaster_client.hooks.botocore_events import lent, signing_with  # noqa: PLC0415  needs boto3

        session = self._session
        known = None if session is None else session.get_config_variable("region")
        profile = None if session is None else session.get_config_variable("profile")
        return signing_with(lambda: lent(lambda: self._frozen), region=known or region, profile=profile)


def _refused(error: TrainmasterClientError) -> Any:  # noqa: ANN401  botocore's pair
    from trainmaster_client.hooks.botocore_events import refusal  # noqa: PLC0415  needs boto3

    return refusal(error)
