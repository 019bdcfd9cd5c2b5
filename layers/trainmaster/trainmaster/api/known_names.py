"""Check names and instants in a query; the error for an unknown name lists the known ones."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

from trainmaster.api.request_context import RequestContext
from trainmaster.core.errors import FieldError, InvalidRequestError, invalid, quoted
from trainmaster.core.policy import DEFAULT_TEAM, UNMANAGED, UNMANAGED_TEAM, PoolPolicy

_MOST_NAMED = 20
"""Names in one hint; a policy may have 500 pools."""


def refused(parameter: str, message: str, hint: str) -> InvalidRequestError:
    return invalid([FieldError(field=f"query.{parameter}", message=message, hint=hint)])


def instant(parameter: str, text: str) -> datetime:
    """Read an ISO 8601 instant; one without a zone is UTC. Raises InvalidRequestError."""
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"{quoted(text)} is not a valid time"
        raise refused(parameter, message, "write it like 2026-11-02T12:00:00Z") from error


def pools_asked(context: RequestContext, name: str | None) -> Sequence[PoolPolicy]:
    """Return all pools of the policy, or the one of this name. Raises InvalidRequestError."""
    if name is None:
        return context.policy.pools
    named_pool = None if name == UNMANAGED else context.policy.pool(name)
    if named_pool is None:
        raise no_pool(context, name)
    return (named_pool,)


def no_pool(context: RequestContext, name: str) -> InvalidRequestError:
    known = [pool.name for pool in context.policy.pools]
    return refused("pool", f"there is no pool {quoted(name)}", one_of(name, known, "the policy has no pools"))


def known_teams(context: RequestContext) -> tuple[str, ...]:
    """Return the policy's teams, and the team of jobs that bypassed the queue."""
    named = [team.name for team in context.policy.teams] or [DEFAULT_TEAM]
    return tuple(dict.fromkeys((*named, UNMANAGED_TEAM)))


def no_team(context: RequestContext, name: str) -> InvalidRequestError:
    hint = one_of(name, known_teams(context))
    return refused("team", f"there is no team {quoted(name)}", hint)


def one_of(written: str, known: Iterable[str], none: str = "") -> str:
    """Write a hint: a similar known name, if there is one, then the known names."""
    names = list(known)
    if not names:
        return none
    near = get_close_matches(written, names, n=1)
    others = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    meant = f"did you mean {near[0]}? " if near else ""
    return f"{meant}use one of: {', '.join(names[:_MOST_NAMED])}{others}"
