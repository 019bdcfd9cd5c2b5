"""Hold one request: the call, its caller, the ports that routes may use; and send its wake-up."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from time import process_time
from typing import Any, Protocol

from trainmaster.core.errors import FieldError, ForbiddenError, UnavailableError, invalid
from trainmaster.core.field_paths import path_text
from trainmaster.core.policy import Policy
from trainmaster.core.records import StoredPolicy
from trainmaster.core.submission.identity import Caller, caller_of, is_admin, stranger, teams_of
from trainmaster.core.submission.team_limits import most_reads, too_many_reads
from trainmaster.ports import (
    Clock,
    FolderRegister,
    HistoryReader,
    JobReader,
    JobStore,
    LedgerReader,
    PolicyStore,
    PoolReader,
    QueueReader,
    RepairReader,
    SetAsideRegister,
    SnapshotReader,
    SpotReader,
    ViolationReader,
    WakeUps,
)
from trainmaster.services.policy_in_force import PolicyInForce, policy_in_force
from trainmaster.services.read_counts import ReadCounts


class ApiReader(
    JobReader,
    QueueReader,
    PoolReader,
    SnapshotReader,
    LedgerReader,
    SpotReader,
    ViolationReader,
    HistoryReader,
    Protocol,
):
    """Declares every read that the API makes."""


@dataclass(slots=True)
class LastPolicy:
    """Keeps the policy as this process read it last; its users check that it is still in force."""

    in_force: PolicyInForce | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Holds the ports of the API, and the facts of its deployment."""

    store: JobStore
    reader: ApiReader
    policies: PolicyStore
    wake_ups: WakeUps
    clock: Clock
    register: SetAsideRegister
    repairs: RepairReader
    random_bytes: Callable[[int], bytes]
    """Source of random bytes for entry ids."""
    account_id: str
    admin_principal_arns: tuple[str, ...]
    reads: ReadCounts
    cpu_seconds: Callable[[], float] = process_time
    """Returns the CPU seconds that this process has used."""
    left: Callable[[], timedelta] = lambda: timedelta(minutes=1)
    """Returns the time left to this call; optional parts of an answer are left out if it is short."""
    region: str = ""
    """AWS region of the stack; "" if unknown."""
    training_role_arns: tuple[str, ...] = ()
    """Roles that the stack may pass to SageMaker, perhaps with ``*`` in their names; none: unknown."""
    last_policy: LastPolicy = field(default_factory=LastPolicy)
    folders: FolderRegister | None = None
    """Register of folders; None if there are no warnings about shared folders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Holds an HTTP call as the gateway passed it on."""

    user_arn: str | None
    query: Mapping[str, list[str]]
    body: str | None
    is_base64: bool
    content_type: str | None
    accept: str = ""
    if_none_match: str = ""
    idempotency_key: str | None = None
    """Identifies a submission, sent again with each repetition; None if the caller sends no key."""

    def parameters(self, *allowed: str) -> dict[str, str]:
        """Return the query string; an empty value counts as absent.

        Raises:
            InvalidRequestError: A parameter that is unknown (a typo must not change what a call does)
                or given twice.
        """
        errors = [_unknown(name, allowed) for name in self.query if name not in allowed]
        errors += [_repeated(name) for name, values in self.query.items() if len(values) > 1]
        if errors:
            raise invalid(errors)
        return {name: values[0] for name, values in self.query.items() if values and values[0]}


def flag(call: Call, name: str, *, default: bool) -> bool:
    """Read the one parameter that a call takes, true or false. Raises InvalidRequestError."""
    return flags(call, **{name: default})[name]


def flags(call: Call, **defaults: bool) -> dict[str, bool]:
    """Read the parameters that a call takes, each true or false. Raises InvalidRequestError."""
    given = call.parameters(*defaults)
    errors = [_no_flag(name) for name, value in given.items() if value not in {"true", "false"}]
    if errors:
        raise invalid(errors)
    return defaults | {name: value == "true" for name, value in given.items()}


def read_flag(given: Mapping[str, str], name: str) -> bool:
    """Read one of a call's parameters, true or false; false if it is absent. Raises InvalidRequestError."""
    if given.get(name, "false") not in {"true", "false"}:
        raise invalid([_no_flag(name)])
    return given.get(name) == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: HTTPStatus
    body: Mapping[str, Any] | str
    """A text is sent as it is, with its content type."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Holds a call whose caller was admitted, and the policy in force."""

    call: Call
    outside: Outside
    caller: Caller
    teams: tuple[str, ...]
    is_admin: bool
    in_force: PolicyInForce
    policy: Policy
    began_at_cpu: float = 0.0
    """CPU seconds that the process had used when the call came in."""

    @property
    def stored(self) -> StoredPolicy:
        return self.in_force.stored

    @property
    def has_time(self) -> bool:
        """Whether there is time for parts that an answer can do without."""
        return self.outside.left() > timedelta()

    def sees(self, team: str) -> bool:
        """Tell whether the caller sees the team's jobs completely."""
        return self.is_admin or team in self.teams


def enter(call: Call, outside: Outside, *, known: PolicyInForce | None = None) -> RequestContext:
    """Admit the caller, by the policy in force, or by the one that is known already.

    Raises:
        MissingIdentityError: The gateway named no caller; nothing was read.
        ForbiddenError: The caller is in no team and is no admin.
    """
    began_at_cpu = outside.cpu_seconds()
    caller = caller_of(call.user_arn)
    in_force = read_policy(outside) if known is None else known
    policy = in_force.policy
    context = RequestContext(
        call=call,
        outside=outside,
        caller=caller,
        teams=teams_of(caller, policy, outside.account_id),
        is_admin=is_admin(caller, policy, outside.admin_principal_arns),
        in_force=in_force,
        policy=policy,
        began_at_cpu=began_at_cpu,
    )
    if not context.teams and not context.is_admin:
        raise stranger(caller)
    return context


def read_policy(outside: Outside) -> PolicyInForce:
    in_force = outside.last_policy.in_force = policy_in_force(outside.policies, outside.clock())
    return in_force


def weigh(context: RequestContext, *, may_refuse: bool = True) -> None:
    """Count the call against its team's share of the API; an admin's calls are not counted.

    Admins can look even while others overload the API. Raises ShareExceededError.
    """
    if context.is_admin:
        return
    outside, user_arn = context.outside, context.call.user_arn or ""
    outside.reads.weigh(context.teams[0], user_arn=user_arn, now=outside.clock(), may_refuse=may_refuse)


def enter_to_change(call: Call, outside: Outside) -> RequestContext:
    """Admit a call that changes something. Raises as ``enter``, and ShareExceededError."""
    outside.reads.turn_away(call.user_arn)
    context = enter(call, outside)
    weigh(context)
    return context


def enter_to_cancel(call: Call, outside: Outside) -> RequestContext:
    """Admit a cancel, which is counted like any call but never refused for that. Raises as ``enter``."""
    context = enter(call, outside)
    weigh(context, may_refuse=False)
    return context


def enter_to_read(call: Call, outside: Outside) -> RequestContext:
    """Admit a read. Raises as ``enter``, and TooManyRequestsError if the caller's team has read too often."""
    outside.reads.turn_away(call.user_arn)
    now = outside.clock()
    known = outside.reads.refused(call.user_arn, now=now)
    if known is not None:
        raise too_many_reads(*known, at=now)
    context = enter(call, outside)
    weigh(context)
    count_read(context)
    return context


def count_read(context: RequestContext) -> None:
    """Count a read for the caller's first team; an admin's reads are not counted.

    Raises TooManyRequestsError.
    """
    if context.is_admin:
        return
    outside, team, most = context.outside, context.teams[0], most_reads(context.policy)
    now = outside.clock()
    if not outside.reads.within(team, most=most, now=now):
        outside.reads.refuse(context.call.user_arn or "", team, most=most)
        raise too_many_reads(team, most, at=now)


def enter_as_admin(call: Call, outside: Outside) -> RequestContext:
    """Admit an admin. Raises as ``enter``, and ForbiddenError for any other caller."""
    context = enter(call, outside)
    if not context.is_admin:
        raise ForbiddenError("only admins may read or change the policy")
    return context


def _unknown(name: str, allowed: tuple[str, ...]) -> FieldError:
    hint = f"use {', '.join(allowed)}" if allowed else "this call takes none"
    return FieldError(field=path_text(("query", name)), message="unknown parameter", hint=hint)


def _no_flag(name: str) -> FieldError:
    return FieldError(
        field=path_text(("query", name)), message="is neither true nor false", hint="write true or false"
    )


def _repeated(name: str) -> FieldError:
    return FieldError(field=path_text(("query", name)), message="is given twice", hint="give it once")


def wake(wake_ups: WakeUps, pools: Iterable[str]) -> None:
    """Send a wake-up if possible; if not, the reconciler sends one within a minute anyway."""
    with suppress(UnavailableError):
        wake_ups.send(pools)
