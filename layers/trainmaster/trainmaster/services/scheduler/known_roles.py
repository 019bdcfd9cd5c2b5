"""What one look of a pass knows of starts that AWS refuses: as it was read, and as its own starts ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.refused_starts import Sender
from trainmaster.core.planning.actions import Start
from trainmaster.core.planning.refusal_records import RoleChange, RoleStarts, role_digest, starts_key
from trainmaster.core.policy import Policy
from trainmaster.core.request.request import Launcher


@dataclass(slots=True, kw_only=True)
class KnownRoles:
    """Records of the pool; several threads may set one, and the last one to write it counts."""

    policy: Policy
    stack: str
    records: dict[str, RoleStarts] = field(default_factory=dict)
    """By ``starts_key``."""

    def launcher(self, team_name: str) -> Launcher | None:
        """Name the role that a team has its jobs started by."""
        team = self.policy.team(team_name)
        if team is None or team.launcher_role is None:
            return None
        return Launcher(role_arn=team.launcher_role, team=team.name, stack=self.stack)

    def sender(self, job: Job, body: Mapping[str, Any]) -> Sender:
        launcher = self.launcher(job.spec.team)
        arn = launcher.role_arn if launcher else None
        role = body["RoleArn"]
        return Sender(key=starts_key(role_digest(role), arn), role_arn=role, launcher=arn)

    def holds_back(self, start: Start) -> bool:
        """Tell whether starts with its role pause by now, so that it must not be claimed as planned."""
        if start.probes_role is not None or start.job.role is None:
            return False
        launcher = self.launcher(start.job.team)
        return self.is_paused(starts_key(start.job.role, launcher.role_arn if launcher else None))

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
