"""One request: what came in, who calls, what the routes may reach; and the wake-up it leaves."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from time import process_time
from typing import Any, Protocol

from trainmaster.core.errors import FieldError, ForbiddenError, UnavailableError, invalid, path_text
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
    """Every read the API makes."""


@dataclass(slots=True)
class LastPolicy:
    """The policy as this process read it last; whoever decides on it makes sure that it is in force still."""

    found: PolicyInForce | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What the API reaches, and which deployment it speaks for."""

    store: JobStore
    reader: ApiReader
    policies: PolicyStore
    wake_ups: WakeUps
    clock: Clock
    register: SetAsideRegister
    repairs: RepairReader
    random_bytes: Callable[[int], bytes]
    """For entry ids."""
    account_id: str
    admin_principal_arns: tuple[str, ...]
    reads: ReadCounts
    cpu_seconds: Callable[[], float] = process_time
    """What this process has spent."""
    left: Callable[[], timedelta] = lambda: timedelta(minutes=1)
    """Time of this call; what an answer can do without is left out when little is."""
    region: str = ""
    """Where the stack is; "" where nobody knows."""
    last_policy: LastPolicy = field(default_factory=LastPolicy)
    folders: FolderRegister | None = None
    """None: nobody is warned of folders that jobs share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An HTTP call as the gateway handed it over."""

    user_arn: str | None
    query: Mapping[str, list[str]]
    body: str | None
    is_base64: bool
    content_type: str | None
    accept: str = ""
    if_none_match: str = ""
    idempotency_key: str | None = None
    """Which submission of its caller it is, sent with each repetition; None: the caller does not say."""

    def parameters(self, *allowed: str) -> dict[str, str]:
        """The query string; an empty value counts as absent.

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
    """The one parameter that a call takes, true or false. Raises InvalidRequestError."""
    return flags(call, **{name: default})[name]


def flags(call: Call, **defaults: bool) -> dict[str, bool]:
    """The parameters that a call takes, each true or false. Raises InvalidRequestError."""
    given = call.parameters(*defaults)
    errors = [_no_flag(name) for name, value in given.items() if value not in {"true", "false"}]
    if errors:
        raise invalid(errors)
    return defaults | {name: value == "true" for name, value in given.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: HTTPStatus
    body: Mapping[str, Any] | str
    """Text goes out as it is, under its content type."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """A caller who may be here, and the policy in force."""

    call: Call
    outside: Outside
    caller: Caller
    teams: tuple[str, ...]
    is_admin: bool
    found: PolicyInForce
    policy: Policy
    began_at_cpu: float = 0.0
    """What the process had spent when the call came in."""

    @property
    def stored(self) -> StoredPolicy:
        return self.found.stored

    @property
    def has_time(self) -> bool:
        """For what an answer can do without."""
        return self.outside.left() > timedelta()

    def sees(self, team: str) -> bool:
        """True when the team's jobs are shown whole."""
        return self.is_admin or team in self.teams


def enter(call: Call, outside: Outside, *, known: PolicyInForce | None = None) -> RequestContext:
    """Let the caller in, by the policy in force, or by the one that is known already.

    Raises:
        MissingIdentityError: The gateway named no caller; nothing was read.
        ForbiddenError: Somebody of no team who is no admin either.
    """
    began_at_cpu = outside.cpu_seconds()
    caller = caller_of(call.user_arn)
    found = read_policy(outside) if known is None else known
    policy = found.policy
    context = RequestContext(
        call=call,
        outside=outside,
        caller=caller,
        teams=teams_of(caller, policy, outside.account_id),
        is_admin=is_admin(caller, policy, outside.admin_principal_arns),
        found=found,
        policy=policy,
        began_at_cpu=began_at_cpu,
    )
    if not context.teams and not context.is_admin:
        raise stranger(caller)
    return context


def read_policy(outside: Outside) -> PolicyInForce:
    found = outside.last_policy.found = policy_in_force(outside.policies)
    return found


def weigh(context: RequestContext, *, may_refuse: bool = True) -> None:
    """Take the call off its team's share of the API; an admin looks while others storm, and is not weighed.

    Raises ShareExceededError.
    """
    if context.is_admin:
        return
    outside, user_arn = context.outside, context.call.user_arn or ""
    outside.reads.weigh(context.teams[0], user_arn=user_arn, now=outside.clock(), may_refuse=may_refuse)


def enter_to_change(call: Call, outside: Outside) -> RequestContext:
    """Raises as ``enter``, and ShareExceededError."""
    outside.reads.turn_away(call.user_arn)
    context = enter(call, outside)
    weigh(context)
    return context


def enter_to_cancel(call: Call, outside: Outside) -> RequestContext:
    """Raises as ``enter``: a cancel counts like any call, and is never refused for how many there were."""
    context = enter(call, outside)
    weigh(context, may_refuse=False)
    return context


def enter_to_read(call: Call, outside: Outside) -> RequestContext:
    """Raises as ``enter``, and TooManyRequestsError where the caller's team has read too often."""
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
    """For the first team of the caller; an admin's reads count for nobody: he looks while others storm.

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
    """Raises as ``enter``, and ForbiddenError for everybody who is no admin."""
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
    """If it can be done: what was written stands, and the reconciler sends one within a minute anyway."""
    with suppress(UnavailableError):
        wake_ups.send(pools)
