"""The stack's wiring as data: functions, their triggers, and the rights of those triggers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    name: str
    arn: str
    role_arn: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    environment: Mapping[str, str]
    timeout: timedelta
    memory_mb: int
    log_group: str
    json_logs: bool
    runtime: str
    concurrency: int | None
    """Reserved concurrent executions; None: no limit of its own."""

    @property
    def session_name(self) -> str:
        """Name of the role session that the function's calls are made under."""
        return self.code.name


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncSettings:
    """Lambda's settings for events it queues for a function (defaults: Lambda Developer Guide)."""

    retries: int = 2
    max_age: timedelta = timedelta(hours=6)
    on_failure_arn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A service may invoke a function on behalf of a source."""

    function_arn: str
    principal: str
    source_arn: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTrigger:
    function_arn: str
    queue_arn: str
    batch_size: int
    window: timedelta
    max_concurrency: int
    reports_item_failures: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An EventBridge rule of the default bus."""

    arn: str
    pattern: Mapping[str, Any]
    function_arns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    arn: str
    every: timedelta
    function_arn: str
    role_arn: str
    payload: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    arn: str
    topic_arn: str
    function_arn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A REST API as its OpenAPI body describes it."""

    api_id: str
    routes: Mapping[tuple[str, str], str]
    """(method, resource path) -> ARN of the function behind it."""
    policy: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    api_id: str
    name: str


@dataclass(slots=True)
class Wiring:
    """Collected while the resources are created; not changed afterwards."""

    functions: dict[str, Function] = field(default_factory=dict)
    async_settings: dict[str, AsyncSettings] = field(default_factory=dict)
    permissions: list[Permission] = field(default_factory=list)
    queue_triggers: list[QueueTrigger] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    subscriptions: list[Subscription] = field(default_factory=list)
    apis: dict[str, Api] = field(default_factory=dict)
    stages: list[Stage] = field(default_factory=list)
    layers: dict[str, Path] = field(default_factory=dict)
    trusts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """ARN of a role -> who may assume it."""
