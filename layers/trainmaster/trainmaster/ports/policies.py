"""The policy's document and its revisions."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainmaster.core.history.past_records import CapacityChange, PolicyPut
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.records import SetAside, StoredPolicy, SubmissionFreeze


class PolicyStore(Protocol):
    def current(self) -> StoredPolicy: ...

    def revision(self, number: int) -> StoredPolicy | None:
        """Return a revision as it was put in force; None if there was no such revision."""

    def put(
        self,
        document: Mapping[str, Any],
        *,
        text: str | None = None,
        pools: Sequence[str],
        replaces: StoredPolicy,
        history: PolicyPut | None = None,
    ) -> StoredPolicy:
        """Store a new revision and pass its version to each pool and ``UNMANAGED``. Raises LostRaceError.

        ``history`` is stored with it; changes that do not fit into the transaction follow right after it.
        """

    def note_capacity(self, changes: Sequence[CapacityChange]) -> None:
        """Record changes of capacities by calendars; the same ones may be recorded again."""

    def plans(self) -> Mapping[str, PlanSeen]:
        """Return what is known of training plans, by ARN."""

    def note_plan(self, plan: PlanSeen) -> None:
        """Record what is known of a plan, in place of what was known before."""

    def close(self, freeze: SubmissionFreeze) -> None:
        """Close pools to submissions. Raises LostRaceError if another change has closed one of them."""

    def reopen(self, freeze: SubmissionFreeze) -> None:
        """Undo a ``close``, except where another change has closed the pool since."""

    def set_paused(self, paused: bool, *, pools: Sequence[str], replaces: StoredPolicy) -> StoredPolicy: ...  # noqa: FBT001

    def set_aside(self, row: SetAside) -> None: ...
