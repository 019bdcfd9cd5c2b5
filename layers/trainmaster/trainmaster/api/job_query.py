"""Read and check the query string of GET /jobs."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from trainmaster.api.known_names import instant, known_teams, no_pool, no_team, one_of, refused
from trainmaster.api.request_context import RequestContext
from trainmaster.core.errors import quoted
from trainmaster.core.jobs.model import FINAL, Job, JobState
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.submission.identity import is_of

DEFAULT_LIMIT = 50
MAX_LIMIT = 1000
_NUMBER = re.compile(r"[0-9]{1,6}")
_PARAMETERS = (
    "state",
    "team",
    "pool",
    "mine",
    "submitted_by",
    "name_prefix",
    "changed_since",
    "limit",
    "next_token",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """Holds the filters of a list; None leaves a filter out."""

    state: JobState | None
    team: str | None
    pool: str | None
    mine: bool
    submitted_by: str | None
    name_prefix: str | None
    changed_since: datetime | None
    limit: int
    token: str | None

    @property
    def asks_who(self) -> bool:
        return self.mine or self.submitted_by is not None

    @property
    def reads_jobs(self) -> bool:
        """Whether a filter needs the rows of jobs, as entries of the queue do not have its field."""
        return self.asks_who or self.changed_since is not None

    @property
    def is_of_own(self) -> bool:
        """Whether jobs that the caller may not see by name match nothing."""
        return self.asks_who or self.name_prefix is not None

    def still_fits(self, job: Job) -> bool:
        """Tell whether the job still matches: it may have moved on since the queue was read."""
        right_state = job.state is self.state if self.state else not job.is_final
        return right_state and self.pool in {None, job.spec.pool}

    def is_by(self, job: Job, context: RequestContext) -> bool:
        """Tell whether a principal that the query names submitted the job."""
        return is_by(job, context, mine=self.mine, submitted_by=self.submitted_by)

    def text(self) -> str:
        """Write the filters alone, which a token or an entity tag is bound to."""
        since = self.changed_since.isoformat() if self.changed_since else None
        by = [self.mine, self.submitted_by, self.name_prefix, since]
        return json.dumps([self.state, self.team, self.pool, *(by if any(by) else ())])


def is_by(job: Job, context: RequestContext, *, mine: bool, submitted_by: str | None) -> bool:
    """Tell whether the caller (``mine``) and this principal submitted the job; None: any principal."""
    by = job.spec.submitted_by
    return submitted_by in {None, by} and (not mine or is_of(context.caller, by))


def query_of(context: RequestContext) -> ListQuery:
    """Read the query. Raises InvalidRequestError."""
    given = context.call.parameters(*_PARAMETERS)
    query = ListQuery(
        state=_state(given.get("state")),
        team=given.get("team"),
        pool=given.get("pool"),
        mine=read_mine(given.get("mine")),
        submitted_by=given.get("submitted_by"),
        name_prefix=given.get("name_prefix"),
        changed_since=instant("changed_since", given["changed_since"]) if "changed_since" in given else None,
        limit=_limit(given.get("limit")),
        token=given.get("next_token"),
    )
    _check_pool(context, query)
    _check_team(context, query)
    return query


def _state(text: str | None) -> JobState | None:
    if text is None:
        return None
    try:
        return JobState(text)
    except ValueError as error:
        raise refused("state", f"{quoted(text)} is not a state", one_of(text, JobState)) from error


def read_mine(text: str | None) -> bool:
    """Read the filter ``mine``. Raises InvalidRequestError for what is neither true nor false."""
    if text in {None, "true", "false"}:
        return text == "true"
    raise refused("mine", "is neither true nor false", "write true or false")


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if _NUMBER.fullmatch(text) and 1 <= int(text) <= MAX_LIMIT:
        return int(text)
    raise refused("limit", f"{quoted(text)} is not between 1 and {MAX_LIMIT}", f"write 1 to {MAX_LIMIT}")


def _check_pool(context: RequestContext, query: ListQuery) -> None:
    """Accept unknown pools for ended jobs, whose pool may have been removed since."""
    is_known = query.pool in {None, UNMANAGED} or context.policy.pool(query.pool or "") is not None
    if not is_known and query.state not in FINAL:
        raise no_pool(context, query.pool or "")


def _check_team(context: RequestContext, query: ListQuery) -> None:
    """Refuse an unknown team, after checking that it left no jobs when it was removed from the policy."""
    if query.team is None or query.team in known_teams(context):
        return
    if not _has_jobs(context, query.team, query.state):
        raise no_team(context, query.team)


def _has_jobs(context: RequestContext, team: str, state: JobState | None) -> bool:
    reader = context.outside.reader
    if state in FINAL:
        assert state is not None
        return bool(reader.finished(team, state=state, after=None, limit=1))
    return any(team in reader.pool_state(pool).teams for pool in _pools(context) if context.has_time)


def _pools(context: RequestContext) -> Iterable[str]:
    return (*(pool.name for pool in context.policy.pools), UNMANAGED)
