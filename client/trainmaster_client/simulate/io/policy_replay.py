"""A policy beside the one in force, over an account's own history: for a diff and for the Policy page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.core.costs.prices import PriceTable
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy

from trainmaster_client.api import ApiClient, Document
from trainmaster_client.errors import InvalidArgumentError, UnexpectedAnswerError
from trainmaster_client.simulate.comparison.comparisons import Comparison, compare
from trainmaster_client.simulate.engine.assumptions import ASSUMED, NOT_MODELLED
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.engine.replayed_plans import with_known_plans
from trainmaster_client.simulate.io.known_plans import known_plans
from trainmaster_client.simulate.io.side_by_side import Column, side_by_side
from trainmaster_client.simulate.page.document import PageFacts, page
from trainmaster_client.simulate.sources import history_from_account
from trainmaster_client.simulate.sources.account_export import Period, recorded_since

WHOLE = timedelta(minutes=10)
"""A history that is shorter by so little counts as whole."""
Doing = Callable[[str, float | None], None]
"""Called with what is being done, and the share that is done; None if that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyReplay:
    """Both policies over one history; the one in force comes first."""

    period: Period
    since: datetime
    """Begin of the stack's history, or an instant before the period."""
    comparison: Comparison

    @property
    def history(self) -> History:
        return self.comparison.history

    @property
    def is_whole(self) -> bool:
        return self.since <= self.period.since + WHOLE

    @property
    def limits(self) -> Sequence[str]:
        """Return what the replay cannot know, as sentences."""
        return (*self.history.not_known, *ASSUMED, *NOT_MODELLED)

    def report(self, *, command: str) -> str:
        """Return the report as HTML in one file."""
        facts = PageFacts(
            command=command,
            lead=(f"The history of {self.history.source}.",),
            assumed=ASSUMED,
            not_modelled=NOT_MODELLED,
        )
        return page(self.comparison, facts)


def replay_policy(
    api: ApiClient, new: tuple[str, Mapping[str, Any]], period: Period, *, doing: Doing
) -> PolicyReplay:
    """Replay the jobs of the period under a new document, and under the policy in force.

    Args:
        api: Of the stack; the caller has to be an admin.
        new: With its label.
        period: Up to now.
        doing: Hears what is done.

    Raises:
        ForbiddenError: The caller is not an admin.
        InvalidArgumentError: The document is not a policy, or the stack has no history yet.
    """
    label, document = new
    wanted = policy_of(document, source=label)
    answer = api.policy()
    in_force = parse_policy(_document(answer, api), is_stored=True)
    if any(pool.plans for pool in (*in_force.pools, *wanted.pools)):
        known = known_plans(api.pools().get("pools") or (), where=api.api_url)
        wanted, in_force = with_known_plans(wanted, known), with_known_plans(in_force, known)
    since = recorded_since(api, [pool.name for pool in in_force.pools], period)
    if since is None:
        raise InvalidArgumentError(
            "This stack has no history yet: nothing has started in any pool.",
            hint="To try a policy on other jobs: trainmaster simulate --trace FILE --policy FILE.",
        )
    covered = Period(since=max(since, period.since), until=period.until)
    history = history_from_account(
        api, covered, progress=lambda done, _: doing(f"Reading the history: {done:,} jobs", None)
    )
    columns = [
        Column(label=name, history=history, policy=policy)
        for name, policy in ((f"revision {answer.get('revision')}", in_force), (label, wanted))
    ]
    replays = side_by_side(
        columns, progress=lambda share: doing(f"Replaying {len(history.jobs):,} jobs", share)
    )
    comparison = compare(history, replays, prices=PriceTable(overrides=wanted.prices))
    return PolicyReplay(period=period, since=since, comparison=comparison)


def policy_of(document: Mapping[str, Any], *, source: str) -> Policy:
    """Parse a policy. Raises InvalidArgumentError with every mistake."""
    try:
        return parse_policy(document)
    except PolicyViolationError as error:
        problems = "; ".join(f"{violation.field}: {violation.message}" for violation in error.errors)
        hint = "docs/policy.md has every key."
        raise InvalidArgumentError(
            f"{source} is not a valid policy: {problems or error}.", hint=hint
        ) from error


def period_up_to(now: datetime, length: timedelta) -> Period:
    until = now.astimezone(UTC).replace(microsecond=0)
    return Period(since=until - length, until=until)


def _document(answer: Document, api: ApiClient) -> Mapping[str, Any]:
    document = answer.get("policy")
    if not isinstance(document, dict):
        raise UnexpectedAnswerError(api.api_url, what="no policy in its answer")
    return document
