"""The policy in force: what the table has, or the last revision of it that this version understands."""

import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.records import SetAside, StoredPolicy
from trainmaster.ports import Clock, PolicyStore

KEY = "POLICY/current"
MOST_TRIED = 50
"""Revisions before the current one that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyInForce:
    stored: StoredPolicy
    """As it is in the table, whether it is understood or not: what the next change replaces."""
    policy: Policy
    warnings: tuple[FieldError, ...]
    """Of the stored document; the first says where another one is in force."""

    @property
    def replaceable(self) -> StoredPolicy:
        """What a pause keeps: the stored document; of one that is not even JSON, the one in force."""
        if self.stored.is_readable:
            return self.stored
        return replace(self.stored, document=self.policy.to_document(), defaults=self.policy.defaults)


KEPT = timedelta(seconds=10)


@dataclass(slots=True, kw_only=True)
class RecentPolicy:
    """The policy in force as this process read it a moment ago: passes of a batch would all read the same.

    Nothing is decided on an old one for that. The pool's counters say which version it has heard of;
    whoever finds a newer one there asks for it, and a claim decided on another version fails.
    """

    policies: PolicyStore
    clock: Clock
    _found: PolicyInForce | None = field(default=None, init=False)
    _read_at: datetime = field(default=datetime.min.replace(tzinfo=UTC), init=False)

    def of_pool(self, name: str, *, at_least: int = 0) -> PolicyInForce:
        """Read again where it is too old, and for a pool that it does not have."""
        found = self._found
        if found is None or found.stored.version < at_least or found.policy.pool(name) is None:
            return self._read()
        return found if timedelta() <= self.clock() - self._read_at < KEPT else self._read()

    def _read(self) -> PolicyInForce:
        self._read_at = self.clock()
        self._found = policy_in_force(self.policies)
        return self._found


def policy_in_force(policies: PolicyStore) -> PolicyInForce:
    """Never raises for what a document says: somebody must be able to replace it."""
    stored = policies.current()
    try:
        policy = _parsed(stored)
    except PolicyViolationError as error:
        return _earlier(stored, error, policies)
    return PolicyInForce(stored=stored, policy=policy, warnings=policy.warnings)


def _parsed(stored: StoredPolicy) -> Policy:
    if not stored.is_readable:
        error = FieldError(field="", message="is not JSON", hint="put the policy again")
        raise PolicyViolationError("the stored policy is not JSON", errors=[error])
    return _parsed_text(json.dumps(stored.document), stored.defaults)


@lru_cache(maxsize=2)
def _parsed_text(text: str, defaults: int) -> Policy:
    """Whoever reads it again has mostly read the same: the document of 500 pools takes its time."""
    return parse_policy(json.loads(text), is_stored=True, defaults=defaults)


def _earlier(stored: StoredPolicy, refused: PolicyViolationError, policies: PolicyStore) -> PolicyInForce:
    """The newest of the earlier revisions that is understood; the empty document where none is."""
    first = refused.errors[0]
    why = f"{first.field or 'it'}: {first.message}"
    found, revision = parse_policy({}), 0
    for number in range(stored.revision - 1, max(stored.revision - 1 - MOST_TRIED, 0), -1):
        earlier = policies.revision(number)
        try:
            if earlier is not None:
                found, revision = _parsed(earlier), number
                break
        except PolicyViolationError:
            continue
    in_force = f"revision {revision} stays in force" if revision else "no policy is in force"
    message = f"revision {stored.revision} is not understood by this version ({why}); {in_force}"
    policies.set_aside(SetAside(key=KEY, error=message))
    warning = FieldError(
        field="policy", message=message, hint="put a policy that this version knows, or deploy the newer one"
    )
    return PolicyInForce(stored=stored, policy=found, warnings=(warning,))
