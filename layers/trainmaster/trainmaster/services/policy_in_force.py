"""Determine the policy in force: the stored one, or its last revision that this release understands."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.records import SetAside, StoredPolicy
from trainmaster.ports import Clock, PolicyStore
from trainmaster.services.calendars import at_instant
from trainmaster.services.plan_looks import with_plans

KEY = "POLICY/current"
MOST_TRIED = 50
"""Revisions before the current one that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    stored: StoredPolicy
    """The document in the table, understood or not, which the next change replaces."""
    policy: Policy
    warnings: tuple[FieldError, ...]
    """Warnings about the stored document; the first says if another revision is in force instead."""

    @property
    def replaceable(self) -> StoredPolicy:
        """Return what a pause keeps: the stored document, or the policy in force if that is not JSON."""
        if self.stored.is_readable:
            return self.stored
        return replace(self.stored, document=self.policy.to_document(), defaults=self.policy.defaults)


KEPT = timedelta(seconds=10)


@dataclass(slots=True, kw_only=True)
class RecentPolicy:
    """Keeps the policy in force as this process read it a moment ago, for all passes of a batch.

    No decision rests on an outdated policy because of that: the pool's counters hold the version that they
    know, a pass that sees a newer one there requests it, and a claim decided on another version fails.
    """

    policies: PolicyStore
    clock: Clock
    _found: PolicyInForce | None = field(default=None, init=False)
    _read_at: datetime = field(default=datetime.min.replace(tzinfo=UTC), init=False)

    def of_pool(self, name: str, *, at_least: int = 0) -> PolicyInForce:
        """Return the policy, read again if it is too old, below ``at_least``, or does not have the pool."""
        in_force = self._found
        if in_force is None or in_force.stored.version < at_least or in_force.policy.pool(name) is None:
            return self._read()
        return in_force if timedelta() <= self.clock() - self._read_at < KEPT else self._read()

    def _read(self) -> PolicyInForce:
        self._read_at = self.clock()
        self._found = policy_in_force(self.policies, self._read_at)
        return self._found


def policy_in_force(policies: PolicyStore, now: datetime) -> PolicyInForce:
    """Read the policy in force, with the capacities that its calendars and plans have at this instant.

    It never raises because of the document, so that it can be replaced.
    """
    stored = policies.current()
    try:
        policy = at_instant(_parsed(stored), now)
    except PolicyViolationError as error:
        return _earlier(stored, error, policies, now)
    policy = with_plans(policy, policies, now)
    return PolicyInForce(stored=stored, policy=policy, warnings=policy.warnings)


def _parsed(stored: StoredPolicy) -> Policy:
    if not stored.is_readable:
        error = FieldError(field="", message="is not JSON", hint="put the policy again")
        raise PolicyViolationError("the stored policy is not JSON", errors=[error])
    return _parsed_text(json.dumps(stored.document), stored.defaults)


@lru_cache(maxsize=2)
def _parsed_text(text: str, defaults: int) -> Policy:
    """Parse a document; repeated reads mostly give the same, and 500 pools take their time."""
    return parse_policy(json.loads(text), is_stored=True, defaults=defaults)


def _earlier(
    stored: StoredPolicy, refused: PolicyViolationError, policies: PolicyStore, now: datetime
) -> PolicyInForce:
    """Return the newest earlier revision that is understood; the empty document if none is."""
    first = refused.errors[0]
    why = f"{first.field or 'it'}: {first.message}"
    policy, revision = parse_policy({}), 0
    for number in range(stored.revision - 1, max(stored.revision - 1 - MOST_TRIED, 0), -1):
        earlier = policies.revision(number)
        try:
            if earlier is not None:
                policy, revision = at_instant(_parsed(earlier), now), number
                break
        except PolicyViolationError:
            continue
    in_force = f"revision {revision} stays in force" if revision else "no policy is in force"
    message = f"revision {stored.revision} is not understood by this version ({why}); {in_force}"
    policies.set_aside(SetAside(key=KEY, error=message))
    warning = FieldError(
        field="policy", message=message, hint="put a policy that this version knows, or deploy the newer one"
    )
    policy = with_plans(policy, policies, now)
    return PolicyInForce(stored=stored, policy=policy, warnings=(warning,))
