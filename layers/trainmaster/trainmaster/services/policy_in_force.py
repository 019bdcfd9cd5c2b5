"""The policy in force: what the table has, or the last revision of it that this version understands."""

from dataclasses import dataclass, replace

from trainmaster.core.errors import FieldError, PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.records import SetAside, StoredPolicy
from trainmaster.ports import PolicyStore

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
        return replace(self.stored, document=self.policy.to_document())


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
    return parse_policy(stored.document, is_stored=True)


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
