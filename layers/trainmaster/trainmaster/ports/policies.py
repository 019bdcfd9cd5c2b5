"""The policy document and its revisions."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from trainmaster.core.history.past_records import PolicyPut
from trainmaster.core.records import SetAside, StoredPolicy, SubmissionFreeze


class PolicyStore(Protocol):
    def current(self) -> StoredPolicy: ...

    def revision(self, number: int) -> StoredPolicy | None:
        """As it was put in force; None: there was none."""

    def put(
        self,
        document: Mapping[str, Any],
        *,
        text: str | None = None,
        pools: Sequence[str],
        replaces: StoredPolicy,
        history: PolicyPut | None = None,
    ) -> StoredPolicy:
        """Store a new revision and tell each pool and ``UNMANAGED``. Raises LostRaceError.

        ``history`` is remembered with it; of more changes than a transaction takes the rest right after it.
        """

    def close(self, freeze: SubmissionFreeze) -> None:
        """Raises LostRaceError when another change of the policy has closed one of the pools."""

    def reopen(self, freeze: SubmissionFreeze) -> None:
        """Take a ``close`` back, where nobody has closed the pool again."""

    def set_paused(self, paused: bool, *, pools: Sequence[str], replaces: StoredPolicy) -> StoredPolicy: ...  # noqa: FBT001

    def set_aside(self, row: SetAside) -> None: ...
