"""Hold what one pass over one pool works with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmaster.core.planning.refusal_records import RoleChange, RoleStarts
from trainmaster.core.policy import Policy, PoolPolicy
from trainmaster.core.request.request import Launcher
from trainmaster.ports import (
    AlarmKeeper,
    Beside,
    Clock,
    JobReader,
    JobStore,
    Mailer,
    Notifier,
    OutboxStore,
    PoolReader,
    TrainingApi,
    Turns,
)
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.group_commit import GroupCommit


@dataclass(slots=True, kw_only=True)
class KnownRoles:
    """Keeps how AWS answers starts with roles: as the look read it, and as its own starts ended since.

    Several threads may set a record; the last one to write it counts.
    """

    records: dict[str, RoleStarts] = field(default_factory=dict)
    """Records of the pool, by ``starts_key``."""

    def is_paused(self, key: str) -> bool:
        record = self.records.get(key)
        return record is not None and record.pause is not None

    def note(self, change: RoleChange) -> None:
        """Remember what was just written."""
        self.records[change.key] = change.after
        if change.drops is not None:
            self.records.pop(change.drops, None)

    def read_again(self, records: Mapping[str, RoleStarts]) -> None:
        """Take the records as they were just read: another pass wrote one meanwhile."""
        self.records = dict(records)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassContext:
    pool: str
    policy_version: int
    store: JobStore
    messages: OutboxStore
    reader: JobReader
    pools: PoolReader
    training: TrainingApi
    alarms: AlarmKeeper
    notifier: Notifier
    mailer: Mailer
    turns: Turns
    beside: Beside
    clock: Clock
    deadline: Deadline
    """Deadline after which nothing that costs time is begun."""
    stack: str
    policy: Policy
    pool_policy: PoolPolicy
    """The pool's section of the policy."""
    roles: KnownRoles = field(default_factory=KnownRoles)
    records: GroupCommit = field(default_factory=GroupCommit)
    """Records of starts that SageMaker accepted, written in groups."""

    def launcher(self, team_name: str) -> Launcher | None:
        """Return the role that starts the team's jobs; None if the stack itself does."""
        team = self.policy.team(team_name)
        if team is None or team.launcher_role is None:
            return None
        return Launcher(role_arn=team.launcher_role, team=team.name, stack=self.stack)

    def launcher_arn(self, team_name: str) -> str | None:
        launcher = self.launcher(team_name)
        return None if launcher is None else launcher.role_arn
