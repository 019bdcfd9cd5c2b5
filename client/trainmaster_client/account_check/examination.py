"""Runs the whole check in order, and derives the verdict on each fact from the records."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from trainmaster_client.account_check.accelerated_looks import GpuLook, starve, wait_for_gpu
from trainmaster_client.account_check.assumed_answers import ANSWERS
from trainmaster_client.account_check.assumed_courses import COURSES
from trainmaster_client.account_check.assumed_plans import PLANNED
from trainmaster_client.account_check.assumed_stack import STACKED
from trainmaster_client.account_check.event_sink import EventSink, is_awaited
from trainmaster_client.account_check.facts import UNMET, Fact, Look, Need, Records, Verdict, skipped
from trainmaster_client.account_check.leftovers import Leftovers
from trainmaster_client.account_check.looks import Looks
from trainmaster_client.account_check.plan_looks import PlanLook
from trainmaster_client.account_check.service_calls import MissingRightError, RefusedCallError, ServiceCalls
from trainmaster_client.account_check.trial_jobs import Pace, Trials
from trainmaster_client.account_check.trial_requests import (
    INSTANCE_TYPE,
    TRIALS,
    Means,
    pending_probes,
    refusal_probes,
)

FACTS: tuple[Fact, ...] = (*ANSWERS, *COURSES, *STACKED, *PLANNED)
PER_JOB = 20
"""Default limit of instances per job. Source: AWS General Reference, "Amazon SageMaker AI quotas"."""
_GPU_SECONDS = 480.0
_STARVE_SECONDS = 2100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Options of the command that add trials, and whether the account is the local twin."""

    gpu: str | None
    starve: bool
    is_loopback: bool
    plan: str | None = None
    """ARN of a training plan with an open window; None leaves its facts out."""


def judge(fact: Fact, records: Records, unmet: Iterable[Need]) -> Verdict:
    """Return the verdict on a fact; the same records always give the same verdict."""
    for need in fact.needs:
        if need in unmet:
            return skipped(UNMET[need])
    verdict = fact.judge(records)
    if verdict is not None:
        return verdict
    if fact.id in records.get("no_probe", {}):
        return skipped(records["no_probe"][fact.id])
    why: str = records.get("ended_looks", {}).get(fact.look) or "not seen before the time was up"
    return skipped(why)


def unmet_needs(options: Asked, *, has_quota: bool) -> set[Need]:
    is_unmet = {
        Need.GPU: options.gpu is None,
        Need.STARVE: not options.starve,
        Need.PLAN: options.plan is None,
        Need.QUOTA_LIST: not has_quota,
        Need.AWS_TIME: options.is_loopback,
    }
    return {Need.STACK, *(need for need, unmet in is_unmet.items() if unmet)}


@dataclass(slots=True, kw_only=True)
class Examination:
    calls: ServiceCalls
    means: Means
    options: Asked
    account: str
    pace: Pace
    records: dict[str, Any]
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    _quotas: dict[str, float] = field(default_factory=dict)
    _sink: EventSink | None = None

    def run(self) -> None:
        """Fill the records and remove what the check made, however it ends."""
        self.records |= {"ended_looks": {}, "jobs": {}}
        self._remove_leftovers("left by an earlier run")
        try:
            self._examine()
        finally:
            self.say("removing what the check made ...")
            self._remove_leftovers("removed")

    @property
    def has_quota(self) -> bool:
        return INSTANCE_TYPE in self._quotas

    def _examine(self) -> None:
        self._read_quotas()
        quota = self._quotas.get(INSTANCE_TYPE)
        trials = Trials(
            calls=self.calls,
            means=self.means,
            records=self.records,
            pace=self.pace,
            say=self.say,
            quota=None if quota is None else int(quota),
            waiting=[TRIALS[0]],
        )
        looks = Looks(trials=trials, account=self.account)
        with self._looking(Look.EVENTS):
            self._sink = EventSink(calls=self.calls, run=self.means.run)
            self._sink.open()
        until = self.clock() + self.pace.jobs
        with self._looking(Look.TRIALS):
            self._start(looks)
            self._look_beside(looks)
            self._see_ends(trials, looks, until)
        if Look.TRIALS in self.records["ended_looks"]:
            why = self.records["ended_looks"][Look.TRIALS]
            self.records["ended_looks"] |= {look: why for look in Look if look is not Look.TRIALS}
            return
        self._look_back(looks, until)

    def _start(self, looks: Looks) -> None:
        """Start the first trial alone, so that its reads are timed before anything else, then the others."""
        trials, first = looks.trials, TRIALS[0]
        self.records["known_statuses"] = self._known_statuses()
        trials.look()
        if first.label in trials.jobs:
            with self._looking(Look.READS):
                name = self.means.name(first.label)
                prefix = f"arn:{self._partition}:sagemaker:{self.means.region}:{self.account}:training-job/"
                looks.read_after_create(name, prefix + name)
        trials.waiting += TRIALS[1:]
        if self.options.gpu is not None:
            wait_for_gpu(trials, self.options.gpu)
            if self.options.starve:
                starve(trials, self.options.gpu)
        trials.look()

    def _look_beside(self, looks: Looks) -> None:
        """Probe names, refusals and pending times while the trials start."""
        trials = looks.trials
        first = TRIALS[0]
        if first.label in trials.jobs:
            with self._looking(Look.READS):
                looks.unknown_and_used_names(first)
        quota = self._quotas.get(INSTANCE_TYPE, 0)
        with self._looking(Look.REFUSALS):
            probes = refusal_probes(
                self.means,
                account=self.account,
                instances=int(max(quota, PER_JOB)) + 1,
                quota_zero=self._type_without_quota(),
            )
            looks.probe(probes, between=trials.look)
        if self._quotas and self._type_without_quota() is None:
            self.records["no_probe"] = {"refused-quota-zero": "the account has no type whose quota is 0"}
        if self.options.gpu is not None:
            with self._looking(Look.PENDING):
                looks.probe(pending_probes(self.options.gpu), between=trials.look)

    def _see_ends(self, trials: Trials, looks: Looks, until: float) -> None:
        """Wait for the ends of all trials, and measure how soon the quota frees the last one's instance.

        A starved trial waits longer than the others, so it extends the time limit.
        """
        gpu = GpuLook(trials=trials, longest=_GPU_SECONDS) if self.options.gpu else None
        plan = PlanLook(trials=trials, arn=self.options.plan) if self.options.plan else None
        longest = until + (_STARVE_SECONDS if self.options.starve else 0.0)
        if plan is not None:
            with self._looking(Look.PLAN):
                longest = max(longest, self.clock() + plan.begin())

        def meanwhile() -> None:
            self._receive()
            for look, watcher in ((Look.GPU, gpu), (Look.PLAN, plan)):
                if watcher is not None and look not in self.records["ended_looks"]:
                    with self._looking(look):
                        watcher.look()

        while not trials.are_over and self.clock() < longest:
            last = trials.last_label
            if last is not None and "slot" not in self.records and self._can_measure:
                with self._looking(Look.SLOT):
                    looks.slot(label=last)
            trials.look()
            meanwhile()
            self.calls.pause(self.pace.look)

    def _look_back(self, looks: Looks, until: float) -> None:
        """Examine what ended trials left behind, then measure call rates."""
        ended = next(
            (label for label in ("ends", "fails", "early") if "final" in looks.trials.jobs.get(label, {})),
            None,
        )
        with self._looking(Look.REFUSALS):
            looks.probe_again()
        with self._looking(Look.WARM):
            looks.warm_pool(until=until)
            if ended is not None:
                looks.ended(ended)
            self.records["warm"]["quota"] = self._quotas.get(f"{INSTANCE_TYPE} warm", "unknown")
        with self._looking(Look.UPLOADS):
            looks.uploads(self.means.bucket, self.means.run, ("ends", "hears"))
        with self._looking(Look.LOGS):
            looks.signs_of_life(self.means.bucket, self.means.run)
        self._await_events()
        if ended is not None:
            self.say("measuring rates ...")
            with self._looking(Look.RATES):
                looks.rates(looks.trials.jobs[ended]["name"])

    def _await_events(self) -> None:
        """Wait until every end was reported, or until a later event would be later than any may be."""
        began = self.clock()
        ended = {job["name"] for job in self.records["jobs"].values() if job.get("final")}
        while self._sink is not None and Look.EVENTS not in self.records["ended_looks"]:
            self._receive()
            waited = self.clock() - began
            if not is_awaited(ended, self._sink.told, waited=waited, pace=self.pace.events):
                break
            self.calls.pause(self.pace.look)

    def _receive(self) -> None:
        if self._sink is None or Look.EVENTS in self.records["ended_looks"]:
            return
        with self._looking(Look.EVENTS):
            self._sink.receive()
            self.records["events"] = self._sink.events

    @contextmanager
    def _looking(self, look: Look) -> Iterator[None]:
        """Record why a look ended when AWS refuses a call, so that the other looks go on."""
        try:
            yield
        except MissingRightError as error:
            self.records["ended_looks"][look] = f"missing right: {error.action}"
            self.say(f"{look}: missing right: {error.action}")
        except RefusedCallError as error:
            self.records["ended_looks"][look] = str(error)
            self.say(f"{look}: {error}")
        except (LookupError, TypeError, ValueError) as error:  # AWS may answer in a shape nobody knows
            self.records["ended_looks"][look] = f"an answer that is not understood: {error!r}"
            self.say(f"{look}: an answer that is not understood: {error!r}")

    def _read_quotas(self) -> None:
        """Read the account's quotas.

        A missing right to list them only skips the facts that need them.
        """
        request: dict[str, Any] = {"ServiceCode": "sagemaker", "MaxResults": 100}
        try:
            while True:
                page = self.calls.get("service-quotas", "ListServiceQuotas", **request)
                for quota in page["Quotas"]:
                    name, _, usage = quota["QuotaName"].partition(" for training ")
                    if usage in _USAGES:
                        self._quotas[f"{name}{_USAGES[usage]}"] = quota["Value"]
                if not (token := page.get("NextToken")):
                    break
                request["NextToken"] = token
        except (MissingRightError, RefusedCallError) as error:
            self.say(f"quotas: {error}")
        self.records["quotas"] = {
            name: value for name, value in self._quotas.items() if value or INSTANCE_TYPE in name
        }

    def _type_without_quota(self) -> str | None:
        return next(
            (name for name, value in sorted(self._quotas.items()) if not value and " " not in name), None
        )

    @property
    def _can_measure(self) -> bool:
        """Tell whether a refusal names the instances in use; above a job's own limit it names that limit."""
        return self.has_quota and self._quotas[INSTANCE_TYPE] < PER_JOB

    def _known_statuses(self) -> list[str]:
        model = self.calls.client("sagemaker").meta.service_model
        return list(model.shape_for("SecondaryStatus").enum)

    @property
    def _partition(self) -> str:
        return str(self.means.role.split(":")[1])

    def _remove_leftovers(self, key: str) -> None:
        leftovers = Leftovers(calls=self.calls, bucket=self.means.bucket)
        leftovers.remove()
        self.records[key.replace(" ", "_")] = {"removed": leftovers.removed, "kept": leftovers.kept}
        for text in leftovers.removed:
            self.say(f"{key}: {text}")
        for text in leftovers.kept:
            self.say(f"still there: {text}")


_USAGES = {"job usage": "", "warm pool usage": " warm"}
"""Suffixes by how the names of quotas end. Source: Service Quotas, Amazon SageMaker."""
