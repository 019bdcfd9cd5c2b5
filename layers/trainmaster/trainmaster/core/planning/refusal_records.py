"""Records of AWS's refusals in a pool: of a type by the account's limits, of starts with a role."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

MOST_ROLES = 20
"""Most roles that a pool keeps records of: in its counters, a row that each claim of the pool writes."""
MOST_REFUSED_STARTS = 8
"""Most jobs that a role's record names: three of one code pause it, and a few codes may come mixed."""
SEVERAL = 2
"""Number of different refused jobs that show that the quota of the type is the cause, not one job's
request."""
MOST_SHOWN = 500
"""Most characters of AWS's words, and of a role's ARN, that a record keeps."""
_KEY_BYTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountLimit:
    """Lessons of ResourceLimitExceeded about one type."""

    limit: int
    """One less than the sum that was refused: instances in use and warm, and those asked for."""
    until: datetime
    """Instant before which no job that was never refused is tried above the limit; then one start probes
    it."""
    refusals: int
    """Different jobs in a row that were refused; the exponent of the wait."""

    @property
    def is_sure(self) -> bool:
        """Tell whether more than one job met it, so that it is the type's and not due to one request."""
        return self.refusals >= SEVERAL


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedStart:
    """The last refusal of one job, unless that was the job's own fault."""

    entry_id: str
    code: str
    number: int
    """Number of the refusal, counted by role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPause:
    """A pause of starts with the role, in which one at a time is tried again."""

    since: datetime
    number: int
    """Number of the refusal that began it: only a start that was sent after it can end the pause."""
    code: str
    message: str
    """AWS's words about the start of ``team``."""
    team: str
    probes: int = 0
    """Starts refused since; the exponent of the wait."""
    next_probe_at: datetime

    def words(self, *, to: str | None) -> str:
        """Quote AWS as team ``to`` may read it: its words name jobs, keys and subnets of the refused team.

        None stands for an admin.
        """
        return self.message if to in {None, self.team} else self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleStarts:
    """AWS's answers to starts with one role in one pool, since it first refused one.

    Refusals are numbered, so that "was another start accepted between these two" needs no clock: a start
    that was sent when ``n`` refusals were known and was accepted shows that ``n`` of them are not general.
    """

    role_arn: str
    launcher: str | None = None
    """ARN of the launcher role that sends these starts; None: the function ``schedule`` itself."""
    ver: int
    """Version; it rises with each write, which is conditional on it."""
    number: int
    """Number of refusals so far."""
    accepted: int = 0
    """Number of them that were known when the last accepted start was sent."""
    at: datetime
    """Instant of the last refusal."""
    refused: tuple[RefusedStart, ...] = ()
    """Different jobs that were refused after that, the oldest first."""
    pause: StartPause | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChange:
    """A role's record from one version to the next, as it is written."""

    key: str
    before: RoleStarts | None
    after: RoleStarts
    drops: str | None = None
    """Key of the record that a new one displaces."""

    @property
    def begins_pause(self) -> bool:
        return self.after.pause is not None and (self.before is None or self.before.pause is None)


def role_digest(role_arn: str) -> str:
    """Digest a role for queue entries, whatever the length of its ARN."""
    return hashlib.blake2b(role_arn.encode(), digest_size=_KEY_BYTES).hexdigest()


def starts_key(role: str, launcher: str | None) -> str:
    """Return the key of the record of starts with a role (its digest) that a launcher role or none sends."""
    return role if launcher is None else f"{role}-{role_digest(launcher)}"
