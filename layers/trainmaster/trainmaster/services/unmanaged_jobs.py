"""Handle news of a training job that may bypass the queue: find its owner, and record what becomes of it.

Safe to repeat: each event of a training job comes here, and also the sweep of ``reconcile``. The record is
kept once for each training job and revision of the policy, with the messages that follow from it in the same
transaction.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.core import rules
from trainmaster.core.errors import LostRaceError
from trainmaster.core.jobs.model import epoch_ms
from trainmaster.core.jobs.observations import Listed
from trainmaster.core.outbox import to_tell, unmanaged_notice
from trainmaster.core.outbox.messages import MessageKind, OutboxMessage
from trainmaster.core.policy import UNMANAGED, Policy
from trainmaster.core.policy.governance import UnmanagedThen
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.records import Adoption, Alias, StoredPolicy
from trainmaster.core.request.request import MAX_NAME_CHARACTERS, TAG_JOB, TAG_STACK
from trainmaster.core.request.strict_json import canonical
from trainmaster.core.rules.violation import Outcome, ViolationRecord, says_the_same
from trainmaster.core.unmanaged.adoption import adopted_job, note_of
from trainmaster.core.unmanaged.decisions import (
    UnmanagedJob,
    ask_of,
    body_of,
    case_of,
    is_excepted,
    outcome_of,
    team_of,
)
from trainmaster.ports import Clock, JobReader, JobStore, PolicyStore, TrainingJobReader, ViolationReader
from trainmaster.services.deadline import Deadline
from trainmaster.services.observer import Observer
from trainmaster.services.policy_in_force import policy_in_force

_LATER_ATTEMPT = re.compile(r"(?P<base>.+)-r[0-9]+-[0-9a-f]{6}")
"""Names as ``attempt_name`` makes them, unless they had to be cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedJobEvents:
    policies: PolicyStore
    reader: JobReader
    records: ViolationReader
    store: JobStore
    training: TrainingJobReader
    observer: Observer
    clock: Clock
    stack: str

    def hear(self, training_job_name: str, *, tagged: bool) -> tuple[str, ...]:
        """Handle news of a training job, through its job if it has one. Returns the pools to wake.

        Args:
            training_job_name: Name of a training job of this account, started by anybody.
            tagged: Whether it has our stack's tag, or may have it.
        """
        alias = self.reader.alias(training_job_name)
        if alias is not None and (tagged or self._is_live(alias)):
            return _pools(self.observer.hear(training_job_name))
        in_force = policy_in_force(self.policies, self.clock())
        stored, policy = in_force.stored, in_force.policy
        if not tagged and policy.governing.unmanaged_jobs.then is UnmanagedThen.ALLOW:
            return ()
        return self._look(training_job_name, alias, stored, policy)

    def _is_live(self, alias: Alias) -> bool:
        """Tell whether the name is that of a live attempt; after its end the name may be used again.

        An adopted training job carries no tag of ours, and events of others may have lost theirs.
        """
        job = self.reader.job(alias.job)
        if job is None or job.spec.entry_id != alias.entry_id:
            return False
        return job.is_live and alias.attempt == job.attempt

    def _look(
        self, training_job_name: str, alias: Alias | None, stored: StoredPolicy, policy: Policy
    ) -> tuple[str, ...]:
        """Ask SageMaker itself, as the tags of an event may be old, or missing."""
        described = self.training.described(training_job_name)
        if described is None:
            return ()
        tags = self.training.tags(described.observation.training_job_arn)
        stack = tags.get(TAG_STACK)
        if stack == self.stack and alias is not None:
            return _pools(self.observer.hear(training_job_name))
        if stack not in {None, self.stack}:
            return ()
        unmanaged = UnmanagedJob(
            described=described, tags=tags, is_ours=stack is not None, name_taken=alias is not None
        )
        if is_excepted(unmanaged, policy.governing.unmanaged_jobs):
            return ()
        return self._known_attempt(unmanaged) or self._govern(unmanaged, stored, policy)

    def _known_attempt(self, unmanaged: UnmanagedJob) -> tuple[str, ...]:
        """Find the job of a later attempt, if the table was restored to a time before it."""
        name_parts = _LATER_ATTEMPT.fullmatch(unmanaged.name) if unmanaged.is_ours else None
        if name_parts is None:
            return ()
        job = self.reader.job(name_parts["base"])
        if job is not None and job.spec.entry_id == unmanaged.tags.get(TAG_JOB):
            return _pools(self.observer.look(job)) or (job.spec.pool,)
        # Where the name had to be cut its job's name cannot be known, and that job may be known.
        return (UNMANAGED,) if len(unmanaged.name) == MAX_NAME_CHARACTERS else ()

    def _govern(self, unmanaged: UnmanagedJob, stored: StoredPolicy, policy: Policy) -> tuple[str, ...]:
        before = self.records.violation(unmanaged.name, at=unmanaged.described.created_at)
        if before is not None and _is_settled(unmanaged, before, stored):
            return self._stop_again(unmanaged, before)
        record = self._judged(unmanaged, policy, revision=stored.revision)
        if record.outcome is Outcome.ADOPTED:
            return self._adopt(unmanaged, record, before, policy, version=stored.version)
        messages = self._messages(record, before, runs=unmanaged.runs)
        self.store.record_violation(record, replaces=before, messages=messages)
        return (UNMANAGED,) if messages else ()

    def _stop_again(self, unmanaged: UnmanagedJob, record: ViolationRecord) -> tuple[str, ...]:
        """Stop a job again that runs on although it was stopped; a stop still to be sent stays as it is."""
        if not unmanaged.runs or record.outcome is not Outcome.STOPPED:
            return ()
        self.store.leave(UNMANAGED, [self._stop(record)])
        return (UNMANAGED,)

    def _judged(self, unmanaged: UnmanagedJob, policy: Policy, *, revision: int) -> ViolationRecord:
        team, body = team_of(unmanaged, policy), body_of(unmanaged)
        violations = rules.check(body, team=team, policy=policy)
        breaks_a_rule = any(violation.mode is Mode.ENFORCE for violation in violations)
        case = case_of(unmanaged, policy, ask=ask_of(body), breaks_a_rule=breaks_a_rule)
        return ViolationRecord(
            at=unmanaged.described.created_at,
            training_job_name=unmanaged.name,
            training_job_arn=unmanaged.described.observation.training_job_arn,
            team=team,
            role_arn=unmanaged.role_arn,
            unmanaged=True,
            outcome=outcome_of(case),
            violations=violations,
            revision=revision,
        )

    def _adopt(
        self,
        unmanaged: UnmanagedJob,
        record: ViolationRecord,
        before: ViolationRecord | None,
        policy: Policy,
        *,
        version: int,
    ) -> tuple[str, ...]:
        body = body_of(unmanaged)
        ask = ask_of(body)
        assert ask is not None, f"{unmanaged.name} has no instances to count"
        job = adopted_job(unmanaged, ask, team=record.team, policy=policy)
        adoption = Adoption(
            job=job,
            body=canonical(body),
            note=note_of(unmanaged),
            record=record,
            replaces=before,
            messages=self._messages(record, before, runs=True),
            policy_version=version,
        )
        try:
            self.store.adopt(adoption, at=self.clock())
        except LostRaceError:
            return ()  # another event of it was faster, or the sweep; if not, the next one tries again
        return (job.spec.pool, UNMANAGED)

    def _messages(
        self, record: ViolationRecord, before: ViolationRecord | None, *, runs: bool
    ) -> tuple[OutboxMessage, ...]:
        """Build the messages; a finding is not reported again only because the policy has a new revision."""
        tell: tuple[OutboxMessage, ...] = ()
        if before is None or not says_the_same(before, record):
            cause = f"unmanaged#{record.training_job_name}#{epoch_ms(record.at)}#{record.revision}"
            tell = (to_tell(unmanaged_notice(record, runs=runs), cause=cause, at=self.clock()),)
        return (*tell, self._stop(record)) if record.outcome is Outcome.STOPPED else tell

    def _stop(self, record: ViolationRecord) -> OutboxMessage:
        return OutboxMessage(
            id=f"stop#{record.training_job_name}",
            kind=MessageKind.STOP_UNMANAGED,
            at=self.clock(),
            training_job_name=record.training_job_name,
            found=record,
        )


def _is_settled(unmanaged: UnmanagedJob, before: ViolationRecord, stored: StoredPolicy) -> bool:
    """Tell whether nothing is left to decide, as somebody may have been faster than our reads."""
    adopted = before.outcome is Outcome.ADOPTED
    return adopted or before.revision >= stored.revision or not unmanaged.runs


def _pools(pool: str | None) -> tuple[str, ...]:
    return () if pool is None else (pool,)


EVERY_MINUTES = 5
"""Minutes between two sweeps; ``reconcile`` runs each minute."""
MOST_LISTED = 100
MOST_LOOKS = 20
"""Training jobs described in one sweep, two calls each, beside what ``reconcile`` describes anyway."""
_SETTLED = frozenset({Outcome.AUDITED, Outcome.NOT_STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedJobSweep:
    training: TrainingJobReader
    policies: PolicyStore
    reader: JobReader
    records: ViolationReader
    unmanaged: UnmanagedJobEvents
    clock: Clock

    def run(self, deadline: Deadline) -> Iterator[Exception]:
        """Handle each listed job as if an event of it had come; yield what failed, for the next sweep."""
        now = self.clock()
        if _minute(now) % EVERY_MINUTES or deadline.is_over:
            return
        try:
            unheard = self._unheard_of()
        except Exception as error:  # noqa: BLE001  the rest of the run goes on without
            yield error
            return
        for name in in_turn(unheard, now=now):
            if deadline.is_over:
                return
            try:
                self.unmanaged.hear(name, tagged=True)
            except Exception as error:  # noqa: BLE001  one job must not keep the others waiting
                yield error

    def _unheard_of(self) -> list[str]:
        revision = self.policies.current().revision
        listed = self.training.in_progress(limit=MOST_LISTED)
        return [job.training_job_name for job in listed if not self._is_settled(job, revision)]

    def _is_settled(self, job: Listed, revision: int) -> bool:
        """Tell whether it has a job, or the policy in force has judged it and nothing is left to do."""
        if self.reader.alias(job.training_job_name) is not None:
            return True
        record = self.records.violation(job.training_job_name, at=job.created_at)
        return record is not None and record.revision == revision and record.outcome in _SETTLED


def in_turn(names: Sequence[str], *, now: datetime) -> list[str]:
    """Return at most ``MOST_LOOKS`` names; if there are more, the next sweep takes others."""
    if len(names) <= MOST_LOOKS:
        return list(names)
    first = _minute(now) // EVERY_MINUTES * MOST_LOOKS % len(names)
    return [*names[first:], *names[:first]][:MOST_LOOKS]


def _minute(now: datetime) -> int:
    return int(now.timestamp() // 60)
