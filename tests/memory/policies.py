"""PolicyStore over ``Tables``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainmaster.adapters.dynamodb.history_rows import capacity_change_key
from trainmaster.core.errors import LostRaceError
from trainmaster.core.history.past_records import CapacityChange, PolicyPut
from trainmaster.core.policy import UNMANAGED
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.records import SetAside, StoredPolicy, SubmissionFreeze

from tests.memory.history import history_begins
from tests.memory.tables import Tables

SEAL_KEY = "00" * 32


class MemoryPolicyStore:
    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.reported: list[SetAside] = []

    def current(self) -> StoredPolicy:
        return self._tables.policy

    def revision(self, number: int) -> StoredPolicy | None:
        return self._tables.revisions.get(number)

    def set_aside(self, row: SetAside) -> None:
        self.reported.append(row)

    def note_capacity(self, changes: Sequence[CapacityChange]) -> None:
        self._tables.history |= {capacity_change_key(change): change for change in changes}

    def plans(self) -> Mapping[str, PlanSeen]:
        return dict(self._tables.plans)

    def note_plan(self, plan: PlanSeen) -> None:
        self._tables.plans[plan.arn] = plan

    def close(self, freeze: SubmissionFreeze) -> None:
        for pool in freeze.pools:
            other = self._tables.pools[pool].freeze
            if other is not None and other.version >= freeze.version and other.until > freeze.at:
                raise LostRaceError("another admin has closed the pool")
        for pool in freeze.pools:
            self._tables.pools[pool].freeze = freeze

    def reopen(self, freeze: SubmissionFreeze) -> None:
        for pool in freeze.pools:
            if self._tables.pools[pool].freeze == freeze:
                self._tables.pools[pool].freeze = None

    def put(
        self,
        document: Mapping[str, Any],
        *,
        text: str | None = None,
        pools: Sequence[str],
        replaces: StoredPolicy,
        history: PolicyPut | None = None,
    ) -> StoredPolicy:
        at, by = (None, "") if history is None else (history.at, history.by)
        written = self._write(replaces.followed_by(document, text, at=at, by=by), pools, replaces)
        if history is not None:
            changed = {capacity_change_key(change): change for change in history.changes}
            self._tables.history |= changed
            for pool in (*pools, UNMANAGED):
                history_begins(self._tables, pool, at=history.at)
        return written

    def set_paused(self, paused: bool, *, pools: Sequence[str], replaces: StoredPolicy) -> StoredPolicy:  # noqa: FBT001
        return self._write(replace(replaces, paused=paused), pools, replaces)

    def _write(self, new: StoredPolicy, pools: Sequence[str], replaces: StoredPolicy) -> StoredPolicy:
        if self._tables.policy.version != replaces.version:
            raise LostRaceError("another admin was faster")
        written = replace(new, version=replaces.version + 1, seal_key=replaces.seal_key or SEAL_KEY)
        self._tables.policy = replace(written, text=None)
        self._tables.revisions.setdefault(written.revision, written)
        for pool in (*pools, UNMANAGED):
            self._tables.pools[pool].policy_version = written.version
        return written
