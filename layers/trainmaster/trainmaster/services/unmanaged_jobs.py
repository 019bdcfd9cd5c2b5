"""News of a training job that may be nobody's: whose it is, and writing down what is to become of it.

Safe to repeat: each event of a training job comes here, and the sweep of ``reconcile`` besides. The record of
what was found is kept once for each training job and revision of the policy, with the messages that follow
from it in the same transaction.
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
from trainmaster.core.request.request import MAX_NAME_CHARACTERS, TAG_JOB, TAG_STACK, canonical
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
"""Names as ``attempt_name`` makes them, where they did not have to be cut."""


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
        """News of a training job: its job's, if it has one. Returns the pools to wake.

        Args:
            training_job_name: Of a training job of this account, whoever started it.
            tagged: It is said to carry our stack's tag, or may do so.
        """
        alias = self.reader.alias(training_job_name)
        if alias is not None and (tagged or self._is_live(alias)):
            return _pools(self.observer.hear(training_job_name))
        in_force = policy_in_force(self.policies)
        stored, policy = in_force.stored, in_force.policy
        if not tagged and policy.governing.unmanaged_jobs.then is UnmanagedThen.ALLOW:
            return ()
        return self._look(training_job_name, alias, stored, policy)

    def _is_live(self, alias: Alias) -> bool:
        """Then the name is the live attempt's; once it has ended the name may be used again.

        An adopted training job carries no tag of ours, and events of others may have lost theirs.
        """
        job = self.reader.job(alias.job)
        if job is None or job.spec.entry_id != alias.entry_id:
            return False
        return job.is_live and alias.attempt == job.attempt

    def _look(
        self, training_job_name: str, alias: Alias | None, stored: StoredPolicy, policy: Policy
    ) -> tuple[str, ...]:
        """What SageMaker itself says counts; the tags of an event may be old, or missing."""
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
        """A later attempt of a job that was restored to before it: that job finds it by itself."""
        found = _LATER_ATTEMPT.fullmatch(unmanaged.name) if unmanaged.is_ours else None
        if found is None:
            return ()
        job = self.reader.job(found["base"])
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

    def _stop_again(self, unmanaged: UnmanagedJob, found: ViolationRecord) -> tuple[str, ...]:
        """It runs on although it was stopped: a stop that is still to be sent stays as it is."""
        if not unmanaged.runs or found.outcome is not Outcome.STOPPED:
            return ()
        self.store.leave(UNMANAGED, [self._stop(found)])
        return (UNMANAGED,)

    def _judged(self, unmanaged: UnmanagedJob, policy: Policy, *, revision: int) -> ViolationRecord:
        team, body = team_of(unmanaged, policy), body_of(unmanaged)
        violations = rules.check(body, team=team, policy=policy)
        breaks_a_rule = any(one.mode is Mode.ENFORCE for one in violations)
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
        """The same is not reported twice because the policy has another revision."""
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
    """Nothing is to be judged any more; somebody may have been faster than the reads that led here."""
    adopted = before.outcome is Outcome.ADOPTED
    return adopted or before.revision >= stored.revision or not unmanaged.runs


def _pools(pool: str | None) -> tuple[str, ...]:
    return () if pool is None else (pool,)


EVERY_MINUTES = 5
"""A run of ``reconcile`` comes each minute."""
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
        """As if an event of each had come; yields what could not be done, for the next sweep."""
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
        return [one.training_job_name for one in listed if not self._is_settled(one, revision)]

    def _is_settled(self, one: Listed, revision: int) -> bool:
        """It has a job, or the policy in force has judged it and there is nothing left to do."""
        if self.reader.alias(one.training_job_name) is not None:
            return True
        found = self.records.violation(one.training_job_name, at=one.created_at)
        return found is not None and found.revision == revision and found.outcome in _SETTLED


def in_turn(names: Sequence[str], *, now: datetime) -> list[str]:
    """At most ``MOST_LOOKS``; where there are more, others in the next sweep."""
    if len(names) <= MOST_LOOKS:
        return list(names)
    first = _minute(now) // EVERY_MINUTES * MOST_LOOKS % len(names)
    return [*names[first:], *names[:first]][:MOST_LOOKS]


def _minute(now: datetime) -> int:
    return int(now.timestamp() // 60)
