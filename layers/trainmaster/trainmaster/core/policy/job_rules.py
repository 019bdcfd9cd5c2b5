"""The rules of a policy, and of one team, for the request of any training job."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, Generic, Literal

from trainmaster.core.policy import names
from trainmaster.core.policy.findings import Location, meant_keys, shown
from trainmaster.core.policy.image_names import Image
from trainmaster.core.policy.keys import Keys, Section, optional
from trainmaster.core.policy.kinds import (
    Duration,
    Kind,
    ListOf,
    Made,
    T,
    Usd,
    ValuePattern,
    Whole,
    Word,
    list_of,
)
from trainmaster.core.policy.patterns import TextPattern
from trainmaster.core.request.s3_uri import S3Location


class Mode(StrEnum):
    """Consequences for a job that violates a rule."""

    ENFORCE = "enforce"
    """The job is refused, or stopped if it already runs."""
    AUDIT = "audit"
    """The violation is recorded."""


class GuardMode(StrEnum):
    """Modes of a rule that is in force unless its author switches it off with ``allow``."""

    ENFORCE = "enforce"
    AUDIT = "audit"
    ALLOW = "allow"

    @property
    def judges(self) -> Mode | None:
        return None if self is GuardMode.ALLOW else Mode(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed(Generic[T]):
    """A rule that allows only what it lists."""

    mode: Mode = Mode.ENFORCE
    allow: tuple[T, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost(Generic[T]):
    """A rule that allows values up to this one."""

    mode: Mode = Mode.ENFORCE
    value: T


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredTag:
    """A tag that every job needs; any value will do unless ``one_of`` or ``pattern`` restricts it."""

    key: str
    one_of: tuple[str, ...] = ()
    pattern: TextPattern | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredTags:
    mode: Mode = Mode.ENFORCE
    tags: tuple[RequiredTag, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Generic[T, Made]):
    """The kind of rule with a value, written bare (then it is enforced) or in a mapping beside its mode."""

    under: str
    value: Kind[T]
    made: Callable[[Mode, T], Made]

    def read(self, written: object, at: Location) -> Made | None:
        if not isinstance(written, dict):
            return self._judged(Mode.ENFORCE, written, at)
        at.refuse_unknown(written, ["mode", self.under])
        mode, value = _mode(written, at), written.get(self.under)
        if value is not None:
            return self._judged(mode, value, at.below(self.under))
        if at.findings.is_lenient or self.under not in meant_keys(written, ["mode", self.under]):
            at.below(self.under).refuse("is missing", f"write what {at.path.rpartition('.')[2]} is to be")
        return None  # a misspelled key is refused above, and is not missing

    def _judged(self, mode: Mode, written: object, at: Location) -> Made | None:
        value = self.value.read(written, at)
        return None if value is None else self.made(mode, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The kind of rule without a value, which requires something or forbids it."""

    forbids: bool

    def read(self, written: object, at: Location) -> Mode | None:
        if isinstance(written, dict):
            at.refuse_unknown(written, ["mode"])
            return _mode(written, at)
        if written is False and self.forbids:  # could be meant as either
            hint = "write true to refuse it, or leave the key out to allow it"
            at.refuse("does not say whether it is refused or the rule is off", hint)
        elif not isinstance(written, bool):
            hint = "write true, or {mode: audit} to only record violations"
            at.refuse(f"must be true or a mapping with a mode, not {shown(written)}", hint)
        return Mode.ENFORCE if written is True else None


@dataclass(frozen=True, slots=True)
class Guard:
    """The kind of rule that forbids something unless its author switches it off."""

    def read(self, written: object, at: Location) -> GuardMode | None:
        if written is True:
            return GuardMode.ENFORCE
        if not isinstance(written, dict):
            hint = "write {mode: allow} to allow it, {mode: audit} to only record violations, or true"
            at.refuse(f"must be true or a mapping with a mode, not {shown(written)}", hint)
            return None
        at.refuse_unknown(written, ["mode"])
        mode = written.get("mode")
        return GuardMode.ENFORCE if mode is None else Word(GuardMode).read(mode, at.below("mode"))


def _mode(written: Mapping[str, object], at: Location) -> Mode:
    word = written.get("mode")
    mode = None if word is None else Word(Mode).read(word, at.below("mode"))
    return mode or Mode.ENFORCE


_TAG_VALUES = list_of(
    names.TAG_VALUE, "write a list", empty=("is empty: no value would be allowed", "name the values")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRule(Section):
    """Requirements on the value of one tag."""

    one_of: tuple[str, ...] | None = optional(_TAG_VALUES, "The values it may have.")
    pattern: TextPattern | None = optional(
        ValuePattern(),
        "What the whole value must match: characters, `[a-z]`, groups, `|` and `? * + {n,m}`.",
    )


@dataclass(frozen=True, slots=True)
class Tags:
    """The kind of value that names tags: a list of keys, or requirements on values by key."""

    def read(self, written: object, at: Location) -> tuple[RequiredTag, ...]:
        if written in ([], {}):
            at.refuse("requires nothing", "name a tag, or leave it out")
        if isinstance(written, list):
            keys = list_of(names.TAG_KEY, "").read(written, at)
            return tuple(RequiredTag(key=key) for key in keys)
        return tuple(self._tag(key, value, at.below(key)) for key, value in at.mapping(written).items())

    @staticmethod
    def _tag(key: str, value: object, at: Location) -> RequiredTag:
        names.TAG_KEY.read(key, at)
        rule = Keys(TagRule).read(value, at)
        return RequiredTag(key=key, one_of=rule.one_of or (), pattern=rule.pattern)


def _listed(item: Kind[T]) -> ListOf[T, Allowed[T]]:
    return ListOf(
        item=item,
        hint="write a list",
        made=lambda items: Allowed(allow=tuple(items)),
        empty=("is empty: no job would be allowed", "name one, or leave it out"),
    )


ANY: Final = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOrListed(Generic[T]):
    """The kind of value that is a list, or the word ``any``."""

    listed: Kind[Allowed[T]]

    def read(self, written: object, at: Location) -> Allowed[T] | Literal["any"] | None:
        return ANY if written == ANY else self.listed.read(written, at)


ROLES, IMAGES, S3_PREFIXES = _listed(names.ROLE), _listed(names.IMAGE), _listed(names.S3_PREFIX)
_RUNTIME = Duration(least=timedelta(seconds=1))
_COST = Usd(least=Decimal("0.01"), most=Decimal(1_000_000_000))  # only catches a slip of the finger


def _allowed(listed: Kind[Allowed[T]], says: str, example: str, *, under: str = "allow") -> Allowed[T] | None:
    judged = Judged(under=under, value=listed, made=lambda mode, allowed: replace(allowed, mode=mode))
    return optional(judged, says, example=example)


def _at_most(value: Kind[T], says: str, example: str) -> AtMost[T] | None:
    judged = Judged(under="value", value=value, made=lambda mode, value: AtMost(mode=mode, value=value))
    return optional(judged, says, example=example)


def _asked(says: str) -> Mode | None:
    return optional(Switch(forbids=False), says, example="true")


def _forbidden(says: str) -> Mode | None:
    return optional(Switch(forbids=True), says, example="true")


def _guarded(says: str) -> GuardMode | None:
    return optional(Guard(), says, example="{mode: audit}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules(Section):
    """All rules of a policy or team; None where the rule is not written."""

    required_tags: RequiredTags | None = optional(
        Judged(under="tags", value=Tags(), made=lambda mode, tags: RequiredTags(mode=mode, tags=tags)),
        "Tags that every job needs; `[owner, model]` is short for tags with any value.",
        example='{tags: {phase: {one_of: [pretrain, finetune]}, model: {pattern: "[a-z0-9-]+"}, owner: {}}}',
    )
    instance_types: Allowed[str] | None = _allowed(
        _listed(names.TYPE_GLOB),
        "Instance types that jobs may ask for; `*` stands for any characters.",
        '[ml.p5.48xlarge, "ml.g5.*"]',
    )
    max_instances: AtMost[int] | None = _at_most(
        Whole(least=1), "Most instances of a job, of all types together.", "16"
    )
    max_runtime: AtMost[timedelta] | None = _at_most(_RUNTIME, "Longest `MaxRuntimeInSeconds`.", "3d")
    max_estimated_cost_usd: AtMost[Decimal] | None = _at_most(
        _COST,
        "Most that `MaxRuntimeInSeconds` may cost on the most expensive instances that the job may use, at "
        "their on-demand price; a type without a price violates the rule.",
        "20000",
    )
    spot_needs_checkpoint: Mode | None = _asked("A job that may run on spot needs `CheckpointConfig`.")
    vpc_required: Mode | None = _asked("Jobs need `VpcConfig`.")
    network_isolation: Mode | None = _asked("Jobs need `EnableNetworkIsolation`.")
    traffic_encryption: Mode | None = _asked("Jobs need `EnableInterContainerTrafficEncryption`.")
    single_az_when_distributed: Mode | None = _asked(
        "Jobs of several instances need exactly one subnet: a subnet lies in one zone."
    )
    roles: Allowed[str] | None = _allowed(
        ROLES,
        "ARNs of the roles that jobs may run under, compared literally; no `*`.",
        '["arn:aws:iam::111122223333:role/vision-training"]',
    )
    images: Allowed[Image] | None = _allowed(
        IMAGES,
        "Registry and repository of the images that jobs may run; with a tag or digest, only that one.",
        '["763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training"]',
    )
    s3_prefixes: Allowed[S3Location] | None = _allowed(
        S3_PREFIXES,
        "Where every S3 URI of the request must be: `s3://bucket/` or `s3://bucket/prefix/`.",
        '["s3://vision-data/", "s3://shared/imagenet/"]',
    )
    kms_keys: Allowed[str] | None = _allowed(
        _listed(names.KMS_KEY_GLOB),
        "ARNs of the keys that jobs may name, not ids or aliases; `*` stands for any characters but colons.",
        '["arn:aws:kms:us-east-1:111122223333:key/*"]',
    )
    debugger_instances: Mode | None = _forbidden(
        "Debugger and profiler rules may not have instances of their own."
    )
    remote_debug: GuardMode | None = _guarded(
        "No `EnableRemoteDebug`, a shell in the container. Default: enforced where there are `teams`."
    )
    session_chaining: GuardMode | None = _guarded(
        "No `EnableSessionTagChaining`, which passes the caller's session tags on to the role of the job. "
        "Default: enforced where there are `teams`."
    )
    secrets: GuardMode | None = _guarded(
        "Nothing that looks like a secret, or is named like one, in hyperparameters, environment, arguments, "
        "tags. Default: enforced."
    )
    name_prefix: Allowed[str] | None = _allowed(
        _listed(names.NAME_PREFIX), "What job names must begin with.", '["vision-"]', under="one_of"
    )
    must_fit: Mode | None = _asked("A model of the training program has to fit into the memory of the GPUs.")
