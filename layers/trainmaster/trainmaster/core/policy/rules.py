"""The rules of a policy, and of one team, as typed data: what the request of any training job may ask for."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Generic, TypeVar

from trainmaster.core.policy.governing import Mode
from trainmaster.core.policy.images import Image
from trainmaster.core.policy.patterns import TextPattern
from trainmaster.core.request.s3_uri import S3Location

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed(Generic[T]):
    """What is not listed is against the rule."""

    mode: Mode = Mode.ENFORCE
    allow: tuple[T, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost(Generic[T]):
    """What is above the value is against the rule."""

    mode: Mode = Mode.ENFORCE
    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredTag:
    """A tag that every job needs; without the rest any value will do."""

    key: str
    one_of: tuple[str, ...] = ()
    pattern: TextPattern | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredTags:
    mode: Mode = Mode.ENFORCE
    tags: tuple[RequiredTag, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Each None: no such rule."""

    required_tags: RequiredTags | None = None
    instance_types: Allowed[str] | None = None
    """Types, with ``*`` for any characters."""
    max_instances: AtMost[int] | None = None
    """Of all types together."""
    max_runtime: AtMost[timedelta] | None = None
    max_estimated_cost_usd: AtMost[Decimal] | None = None
    """All of MaxRuntimeInSeconds on the dearest instances it may run on, at their on-demand price."""
    spot_needs_checkpoint: Mode | None = None
    vpc_required: Mode | None = None
    network_isolation: Mode | None = None
    traffic_encryption: Mode | None = None
    """Between containers."""
    single_az_when_distributed: Mode | None = None
    """Exactly one subnet for more than one instance: a subnet lies in one zone."""
    roles: Allowed[str] | None = None
    """ARNs, as they stand."""
    images: Allowed[Image] | None = None
    s3_prefixes: Allowed[S3Location] | None = None
    kms_keys: Allowed[str] | None = None
    """Key ARNs, with ``*`` for any characters but colons."""
    debugger_instances: Mode | None = None
    """Refuses debugger and profiler rules with instances of their own."""
    remote_debug: Mode | None = None
    """Refuses a shell in the container."""
    name_prefix: Allowed[str] | None = None
    must_fit: Mode | None = None
    """Models of the training program that the memory of the instances is too small for."""
