"""The plane without AWS: handlers over watched in-memory ports, and a clock that stands still."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.api.add_job import add_job
from trainmaster.api.job_patches import patch_job
from trainmaster.api.jobs import cancel_job
from trainmaster.api.request_context import Answer, Call, Outside, RequestContext, enter
from trainmaster.core.errors import TrainmasterError
from trainmaster.core.jobs.model import Job
from trainmaster.core.monitoring.alarms import Watched
from trainmaster.core.policy import PoolPolicy, parse_policy
from trainmaster.ports import LogReader
from trainmaster.services.alarm_events import IdleWatch
from trainmaster.services.alarm_sweep import AlarmSweep
from trainmaster.services.dependency_sweep import DependencySweep
from trainmaster.services.end_policy import EndPolicy
from trainmaster.services.metric_looks import LossLooks, MetricLooks, ProgressLooks
from trainmaster.services.observer import Observer
from trainmaster.services.plan_looks import PlanLooks
from trainmaster.services.policy_in_force import RecentPolicy
from trainmaster.services.queue_fronts import FrontLooks
from trainmaster.services.read_counts import ReadCounts
from trainmaster.services.reconciler import CheckpointLooks, Reconciler
from trainmaster.services.repair_steps import RepairSteps
from trainmaster.services.scheduler.passes import Scheduler
from trainmaster.services.scheduler.score_updates import Reranker
from trainmaster.services.unmanaged_jobs import UnmanagedJobEvents, UnmanagedJobSweep

from tests.builders import NOON
from tests.histories.stage import Stage
from tests.histories.watch import JudgedStore, Watch
from tests.memory.edges import (
    FOREVER,
    MemoryAlarms,
    MemoryCheckpoints,
    MemoryFronts,
    MemoryLogs,
    MemoryMailer,
    MemoryMetrics,
    MemoryNotifier,
    MemoryReadCounts,
    MemoryRegister,
    MemoryRepairs,
    MemoryRotation,
    MemoryTurns,
    MemoryWakeUps,
    one_by_one,
)
from tests.memory.policies import MemoryPolicyStore
from tests.memory.reader import MemoryReader
from tests.memory.sagemaker import MemorySageMaker
from tests.memory.tables import Tables

ACCOUNT = "123456789012"
USER = f"arn:aws:iam::{ACCOUNT}:user/ada"
POOL = "main"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ports:
    """Watched: processes hand over, fail and die at their calls."""

    store: Any
    reader: Any
    policies: Any
    training: Any
    wake_ups: Any
    alarms: Any


@dataclass(slots=True)
class World:
    document: dict[str, Any]
    stage: Stage
    now: datetime = NOON
    tables: Tables = field(default_factory=Tables)
    wake_ups: MemoryWakeUps = field(default_factory=MemoryWakeUps)
    checkpoints: MemoryCheckpoints = field(default_factory=MemoryCheckpoints)
    notifier: MemoryNotifier = field(default_factory=MemoryNotifier)
    mailer: MemoryMailer = field(default_factory=MemoryMailer)
    alarms: MemoryAlarms = field(default_factory=MemoryAlarms)
    metrics: MemoryMetrics = field(default_factory=MemoryMetrics)
    fronts: MemoryFronts = field(default_factory=MemoryFronts)
    logs: MemoryLogs = field(default_factory=MemoryLogs)
    sagemaker: MemorySageMaker = field(init=False)
    reader: MemoryReader = field(init=False)
    policies: MemoryPolicyStore = field(init=False)
    watch: Watch = field(init=False)
    scheduler: Scheduler = field(init=False)
    observer: Observer = field(init=False)
    unmanaged: UnmanagedJobEvents = field(init=False)
    idle_watch: IdleWatch = field(init=False)
    reconciler: Reconciler = field(init=False)
    outside: Outside = field(init=False)
    entries: int = 0

    def __post_init__(self) -> None:
        self.sagemaker = self.make_sagemaker()
        self.reader, self.policies = MemoryReader(self.tables), MemoryPolicyStore(self.tables)
        self.policies.put(self.document, pools=[POOL], replaces=self.policies.current())
        self.watch = Watch(tables=self.tables, sagemaker=self.sagemaker)
        self._wire()

    def make_sagemaker(self) -> MemorySageMaker:
        return MemorySageMaker(clock=self.clock)

    def _wire(self) -> None:
        """As the composition root does, over watched ports."""
        watched = self.stage.watched
        ports = _Ports(
            store=watched(JudgedStore(self.tables, self.watch)),
            reader=watched(self.reader),
            policies=watched(self.policies),
            training=watched(self.sagemaker),
            wake_ups=watched(self.wake_ups),
            alarms=watched(self.alarms),
        )
        self.scheduler = self._scheduler(ports)
        self.observer = self._observer(ports, self.logs)
        self.unmanaged = self._unmanaged(ports)
        self.idle_watch = self._idle_watch(ports)
        self.reconciler = self._reconciler(ports)
        self.outside = self._outside(ports)

    def _scheduler(self, ports: _Ports) -> Scheduler:
        store, reader = ports.store, ports.reader
        return Scheduler(
            policy=RecentPolicy(policies=ports.policies, clock=self.clock),
            snapshots=reader,
            store=store,
            messages=store,
            reader=reader,
            pools=reader,
            training=ports.training,
            alarms=ports.alarms,
            notifier=self.stage.watched(self.notifier),
            mailer=self.stage.watched(self.mailer),
            reranker=Reranker(store=store, queue=reader, reader=reader, clock=self.clock),
            turns=MemoryTurns(),
            beside=one_by_one,
            fronts=self.fronts,
            clock=self.clock,
            stack="trainmaster",
        )

    def _observer(self, ports: _Ports, logs: LogReader | None, *, listing: Any = None) -> Observer:
        return Observer(
            store=ports.store,
            reader=ports.reader,
            training=ports.training,
            end_policy=EndPolicy(
                policies=ports.policies, reader=ports.reader, training=ports.training, logs=logs
            ),
            listing=listing,
            clock=self.clock,
        )

    def _unmanaged(self, ports: _Ports) -> UnmanagedJobEvents:
        return UnmanagedJobEvents(
            policies=ports.policies,
            reader=ports.reader,
            records=ports.reader,
            store=ports.store,
            training=ports.training,
            observer=self.observer,
            clock=self.clock,
            stack="trainmaster",
        )

    def _idle_watch(self, ports: _Ports) -> IdleWatch:
        return IdleWatch(
            alarms=ports.alarms,
            reader=ports.reader,
            store=ports.store,
            policies=ports.policies,
            clock=self.clock,
            stack="trainmaster",
        )

    def _reconciler(self, ports: _Ports) -> Reconciler:
        reader, store = ports.reader, ports.store
        return Reconciler(
            policies=ports.policies,
            queue=reader,
            reader=reader,
            observer=self._observer(ports, None, listing=ports.training),
            alarm_sweep=AlarmSweep(
                alarms=ports.alarms,
                idle_watch=self.idle_watch,
                reader=reader,
                store=store,
                clock=self.clock,
                stack="trainmaster",
            ),
            plan_looks=PlanLooks(
                plans=ports.training, policies=ports.policies, pools=reader, store=store, clock=self.clock
            ),
            metric_looks=MetricLooks(
                metrics=self.stage.watched(self.metrics), reader=reader, store=store, clock=self.clock
            ),
            progress_looks=ProgressLooks(logs=self.logs, reader=reader, store=store, clock=self.clock),
            loss_looks=LossLooks(logs=self.logs, reader=reader, store=store, clock=self.clock),
            checkpoint_looks=CheckpointLooks(
                reader=reader,
                store=store,
                checkpoints=self.stage.watched(self.checkpoints),
                clock=self.clock,
            ),
            sweep=UnmanagedJobSweep(
                training=ports.training,
                policies=ports.policies,
                reader=reader,
                records=reader,
                unmanaged=self.unmanaged,
                clock=self.clock,
            ),
            dependency_sweep=DependencySweep(queue=reader, table=reader, store=store, clock=self.clock),
            wake_ups=ports.wake_ups,
            repair=RepairSteps(store=MemoryRepairs(), register=MemoryRegister(), clock=self.clock),
            rotation=MemoryRotation(),
            front_looks=FrontLooks(queue=reader, fronts=self.fronts, clock=self.clock),
            beside=one_by_one,
            clock=self.clock,
        )

    def _outside(self, ports: _Ports) -> Outside:
        return Outside(
            store=ports.store,
            reader=ports.reader,
            policies=ports.policies,
            wake_ups=ports.wake_ups,
            clock=self.clock,
            register=MemoryRegister(),
            repairs=MemoryRepairs(),
            random_bytes=self._random_bytes,
            account_id=ACCOUNT,
            admin_principal_arns=(USER,),
            reads=ReadCounts(MemoryReadCounts()),
        )

    def clock(self) -> datetime:
        return self.now

    def _random_bytes(self, count: int) -> bytes:
        self.entries += 1
        return self.entries.to_bytes(count, "big")

    # ---- what runs as a process

    def submit(self, request: dict[str, Any]) -> Answer | TrainmasterError:
        return self._call(lambda context: add_job(context.call, self.outside), json.dumps(request))

    def cancel(self, name: str) -> Answer | TrainmasterError:
        return self._call(lambda context: cancel_job(context, name))

    def _call(
        self, route: Callable[[RequestContext], Answer], body: str | None = None
    ) -> Answer | TrainmasterError:
        call = Call(user_arn=USER, query={}, body=body, is_base64=False, content_type="application/json")
        try:
            return route(enter(call, self.outside))
        except TrainmasterError as error:  # the router makes a problem document of it
            return error

    def run_pass(self, pool: str = POOL) -> None:
        """A failed one leaves its ring in the queue."""
        try:
            summary = self.scheduler.run(pool, deadline=FOREVER)
        except TrainmasterError as error:
            if not error.retryable:
                raise
            self.wake_ups.woken.append(pool)
            return
        unexpected = [one for one in summary.failures if not isinstance(one, TrainmasterError)]
        assert unexpected == [], unexpected

    def hear(self, training_job_name: str) -> None:
        """As the function does; a failed one is tried again by Lambda, or is lost."""
        try:
            pool = self.observer.hear(training_job_name)
            if pool is not None:
                self.outside.wake_ups.send([pool])
        except TrainmasterError as error:
            if not error.retryable:
                raise

    def hear_of_unmanaged(self, training_job_name: str) -> None:
        """News of a training job whose event shows no tag of ours."""
        try:
            self.outside.wake_ups.send(self.unmanaged.hear(training_job_name, tagged=False))
        except TrainmasterError as error:
            if not error.retryable:
                raise

    def hear_alarm(self, watched: Watched) -> None:
        try:
            pool = self.idle_watch.look(watched)
            if pool is not None:
                self.outside.wake_ups.send([pool])
        except TrainmasterError as error:
            if not error.retryable:
                raise

    def reconcile(self) -> None:
        try:
            repairs = self.reconciler.run(deadline=FOREVER)
        except TrainmasterError as error:
            if not error.retryable:
                raise
        else:
            assert repairs.faults == [], repairs.failures

    def change_policy(self, document: dict[str, Any]) -> None:
        self._administer(lambda now: self.outside.policies.put(document, pools=[POOL], replaces=now))

    def pause(self, paused: bool) -> None:  # noqa: FBT001  as the port
        self._administer(lambda now: self.outside.policies.set_paused(paused, pools=[POOL], replaces=now))

    def _administer(self, act: Callable[[Any], Any]) -> None:
        try:
            act(self.outside.policies.current())
            self.outside.wake_ups.send([POOL])
        except TrainmasterError as error:
            if not error.retryable:
                raise

    def patch(self, name: str, **wish: Any) -> Answer | TrainmasterError:
        return self._call(lambda context: patch_job(context, name), json.dumps(wish))

    # ---- what is asked about it

    def pool(self) -> PoolPolicy:
        found = parse_policy(self.tables.policy.document).pool(POOL)
        assert found is not None
        return found

    def job(self, name: str) -> Job:
        return self.tables.jobs[name]
