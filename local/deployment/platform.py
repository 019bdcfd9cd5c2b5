"""The parts of the twin that a deployed stack's functions and triggers run on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from local.clock import TwinClock
from local.cloudwatch.cloudwatch_twin import CloudWatchTwin
from local.deployment.background import Background
from local.deployment.events.delivery_faults import DeliveryFaults
from local.deployment.gateway.rest_stage import Callers
from local.identity.identities import Identities
from local.sagemaker.ports import LogSink
from local.wire import Principal, Request, Response


class Door(Protocol):
    """The entrance of requests."""

    @property
    def endpoint_url(self) -> str: ...

    @property
    def authorizer(self) -> Callers: ...

    def mount(self, prefix: str, handler: Callable[[Request], Response]) -> str: ...

    def mount_service(
        self, service: str, handler: Callable[[str, dict[str, Any], Principal], dict[str, Any]]
    ) -> None: ...

    def mount_rest_api(self, prefix: str, handler: Callable[[Request, Principal], Response]) -> None: ...

    def add_listener(
        self, service: str, operation: str, listener: Callable[[dict[str, Any]], None]
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    door: Door
    client: Callable[[str], Any]
    """service -> a boto3 client that bypasses rights and journal."""
    logs: LogSink
    cloudwatch: CloudWatchTwin
    identities: Identities
    clock: TwinClock
    background: Background
    deliveries: DeliveryFaults
    region: str
    account_id: str
    clock_file: Path
    log_folder: Path
