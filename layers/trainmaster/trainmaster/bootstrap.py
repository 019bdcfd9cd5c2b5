"""The composition root: builds each part on first use; imports where it builds, for quick cold starts."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import botocore.session

from trainmaster.adapters.client_settings import BRIEF, IN_TURN, QUICK, TABLE
from trainmaster.adapters.lean_client import LeanClient
from trainmaster.settings import Settings

if TYPE_CHECKING:
    from botocore.config import Config

    from trainmaster.adapters import dynamodb
    from trainmaster.adapters.cloudwatch_alarms import CloudWatchAlarms
    from trainmaster.adapters.sagemaker import SageMakerTraining
    from trainmaster.adapters.wake_ups import SqsWakeUps
    from trainmaster.api import Handler
    from trainmaster.core.monitoring.metrics import Sample
    from trainmaster.ports import Beside, LogReader, TrainingJobList
    from trainmaster.services.account_turns import AccountTurns
    from trainmaster.services.alarm_events import IdleWatch
    from trainmaster.services.deadline import Deadline
    from trainmaster.services.observer import Observer
    from trainmaster.services.reconciler import Reconciler
    from trainmaster.services.scheduler.passes import Scheduler
    from trainmaster.services.unmanaged_jobs import UnmanagedJobEvents
    from trainmaster.widget import Widget


class Wiring:
    """Everything a function may need; a function that never asks for SageMaker never loads its model."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._deadline: Deadline | None = None
        self.samples: list[Sample] = []
        """Metrics to write at the end: one set for each write of the table, and what a function adds."""

    @staticmethod
    def clock() -> datetime:
        return datetime.now(UTC)

    def deadline(self, remaining_ms: Callable[[], int], *, margin: timedelta) -> Deadline:
        """Start this invocation's deadline, ``margin`` before its timeout: what the last step may take."""
        from trainmaster.services.deadline import Deadline

        self._deadline = Deadline.before_timeout(remaining_ms, margin=margin)
        return self._deadline

    def _left(self) -> timedelta:
        """Return the time left to this invocation; a minute if it has no deadline."""
        return timedelta(minutes=1) if self._deadline is None else self._deadline.left()

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Write the samples of what is done within, also where that raises: what was written has happened."""
        try:
            yield
        finally:
            taken = [*self.samples, *self._samples_of_set_aside()]
            self.samples.clear()
            if taken:
                from trainmaster.adapters import emf

                emf.write(taken, stack=self.settings.stack)

    def _samples_of_set_aside(self) -> list[Sample]:
        """Sample the rows that could not be understood, each once, however often it was read."""
        return self.register.samples(at=self.clock()) if "table" in self.__dict__ else []

    @cached_property
    def table(self) -> dynamodb.DynamoTable:
        from trainmaster.adapters.dynamodb import DynamoTable

        client, name, extend = self._lean("dynamodb", config=TABLE), self.settings.table, self.samples.extend
        days = self.settings.retention_days
        return DynamoTable(client, name=name, retention_days=days, measure=extend, beside=self.beside)

    @property
    def register(self) -> dynamodb.DynamoRegister:
        return self.table.register

    @property
    def store(self) -> dynamodb.DynamoJobStore:
        return self.table.store

    @property
    def reader(self) -> dynamodb.DynamoReader:
        return self.table.reader

    @property
    def policies(self) -> dynamodb.DynamoPolicyStore:
        return self.table.policies

    @cached_property
    def training(self) -> SageMakerTraining:
        from trainmaster.adapters.launcher_sessions import LauncherSessions
        from trainmaster.adapters.sagemaker import LEAN, SageMakerTraining
        from trainmaster.adapters.turn_taking import TurnTaking

        client = partial(self._lean, "sagemaker", config=IN_TURN, only=LEAN)
        launchers = LauncherSessions(lambda: self._client("sts"), client_with=client, clock=self.clock)
        return SageMakerTraining(client(), calls=TurnTaking(self.turns, left=self._left), launchers=launchers)

    @cached_property
    def turns(self) -> AccountTurns:
        from trainmaster.services.account_turns import AccountTurns

        return AccountTurns(paces=self.table.account, clock=self.clock, pause=self.pause, draw=random.random)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # looked up at each call: a test that has its own clock replaces it

    @cached_property
    def beside(self) -> Beside:
        from trainmaster.adapters.threads import beside

        return beside

    @cached_property
    def alarms(self) -> CloudWatchAlarms:
        from trainmaster.adapters.cloudwatch_alarms import CloudWatchAlarms

        return CloudWatchAlarms(self._client("cloudwatch"), topic_arn=self.settings.alarm_topic_arn)

    @cached_property
    def wake_ups(self) -> SqsWakeUps:
        from trainmaster.adapters.wake_ups import SqsWakeUps

        return SqsWakeUps(self._lean("sqs"), queue_url=self.settings.wake_up_queue_url)

    @cached_property
    def observer(self) -> Observer:
        """Build the observer for the function that hears events; only that one judges failures by logs."""
        return self._observer(self._logs)

    @cached_property
    def _logs(self) -> LogReader:
        from trainmaster.adapters.training_logs import CloudWatchLogs

        return CloudWatchLogs(lambda: self._client("logs", config=BRIEF))

    def _observer(self, logs: LogReader | None, *, listing: TrainingJobList | None = None) -> Observer:
        from trainmaster.services.end_policy import EndPolicy
        from trainmaster.services.observer import Observer

        store, reader, training = self.store, self.reader, self.training
        judge = EndPolicy(policies=self.policies, reader=reader, training=training, logs=logs, spot=reader)
        return Observer(
            store=store, reader=reader, training=training, end_policy=judge, listing=listing, clock=self.clock
        )

    @cached_property
    def api(self) -> Handler:
        from trainmaster.api import Outside, build_api
        from trainmaster.services.read_counts import ReadCounts

        counts = self.table.read_counts(lambda: self._client("dynamodb", config=BRIEF))
        return build_api(
            Outside(
                store=self.store,
                reader=self.reader,
                policies=self.policies,
                wake_ups=self.wake_ups,
                clock=self.clock,
                random_bytes=os.urandom,
                register=self.register,
                repairs=self.table.repairs,
                account_id=self.settings.account_id,
                admin_principal_arns=self.settings.admin_principal_arns,
                reads=ReadCounts(counts, throttle=self.settings.api_throttle),
                left=self._left,
                region=self.settings.region,
                training_role_arns=self.settings.training_role_arns,
                folders=self.table.folders,
            ),
        )

    @cached_property
    def scheduler(self) -> Scheduler:
        from trainmaster.adapters.notifications import EventBridgeNotifier, SnsMailer
        from trainmaster.services.policy_in_force import RecentPolicy
        from trainmaster.services.scheduler.passes import Scheduler
        from trainmaster.services.scheduler.score_updates import Reranker

        return Scheduler(
            policy=RecentPolicy(policies=self.policies, clock=self.clock),
            snapshots=self.reader,
            store=self.store,
            messages=self.store,
            reader=self.reader,
            pools=self.reader,
            training=self.training,
            alarms=self.alarms,
            notifier=EventBridgeNotifier(self._lean("events"), stack=self.settings.stack),
            mailer=SnsMailer(self._client("sns"), topic_arn=self.settings.mail_topic_arn),
            reranker=Reranker(store=self.store, queue=self.reader, reader=self.reader, clock=self.clock),
            turns=self.turns,
            beside=self.beside,
            fronts=self.table.fronts,
            clock=self.clock,
            stack=self.settings.stack,
        )

    @cached_property
    def reconciler(self) -> Reconciler:
        from trainmaster.adapters.s3_checkpoints import S3Checkpoints
        from trainmaster.services.alarm_sweep import AlarmSweep
        from trainmaster.services.dependency_sweep import DependencySweep
        from trainmaster.services.metric_looks import LossLooks, MetricLooks, ProgressLooks
        from trainmaster.services.plan_looks import PlanLooks
        from trainmaster.services.queue_fronts import FrontLooks
        from trainmaster.services.reconciler import CheckpointLooks, Reconciler
        from trainmaster.services.repair_steps import RepairSteps
        from trainmaster.services.unmanaged_jobs import UnmanagedJobSweep

        alarms, watch, saved = self.alarms, self.idle_watch, S3Checkpoints(self._client("s3"))
        reader, store, clock, stack = self.reader, self.store, self.clock, self.settings.stack
        training, rules, heard = self.training, self.policies, self.unmanaged
        return Reconciler(
            policies=rules,
            queue=reader,
            reader=reader,
            observer=self._observer(None, listing=training),
            alarm_sweep=AlarmSweep(
                alarms=alarms, idle_watch=watch, reader=reader, store=store, clock=clock, stack=stack
            ),
            plan_looks=PlanLooks(plans=training, policies=rules, pools=reader, store=store, clock=clock),
            metric_looks=MetricLooks(metrics=alarms, reader=reader, store=store, clock=clock),
            progress_looks=ProgressLooks(logs=self._logs, reader=reader, store=store, clock=clock),
            loss_looks=LossLooks(logs=self._logs, reader=reader, store=store, clock=clock),
            checkpoint_looks=CheckpointLooks(reader=reader, store=store, checkpoints=saved, clock=clock),
            sweep=UnmanagedJobSweep(
                training=training, policies=rules, reader=reader, records=reader, unmanaged=heard, clock=clock
            ),
            dependency_sweep=DependencySweep(queue=reader, table=reader, store=store, clock=clock),
            wake_ups=self.wake_ups,
            rotation=self.table.account,
            front_looks=FrontLooks(queue=reader, fronts=self.table.fronts, clock=clock),
            repair=RepairSteps(store=self.table.repairs, register=self.register, clock=clock),
            beside=self.beside,
            clock=clock,
        )

    @cached_property
    def unmanaged(self) -> UnmanagedJobEvents:
        from trainmaster.services.unmanaged_jobs import UnmanagedJobEvents

        return UnmanagedJobEvents(
            policies=self.policies,
            reader=self.reader,
            records=self.reader,
            store=self.store,
            training=self.training,
            observer=self.observer,
            clock=self.clock,
            stack=self.settings.stack,
        )

    @cached_property
    def idle_watch(self) -> IdleWatch:
        from trainmaster.services.alarm_events import IdleWatch

        alarms, reader, store, rules = self.alarms, self.reader, self.store, self.policies
        clock, stack = self.clock, self.settings.stack
        return IdleWatch(alarms=alarms, reader=reader, store=store, policies=rules, clock=clock, stack=stack)

    @cached_property
    def widget(self) -> Widget:
        from trainmaster.widget import Reads, Widget

        names, codes, left = self.settings.widget_shows_names, self.store.told_reasons, self._left
        reads = Reads(reader=self.reader, told_reasons=codes, clock=self.clock, left=left, shows_names=names)
        return Widget(policies=self.policies, reads=reads, stack=self.settings.stack)

    @cached_property
    def _session(self) -> botocore.session.Session:
        return botocore.session.get_session()

    def _client(self, service: str, *, config: Config = QUICK, **keys: Any) -> Any:
        return self._session.create_client(service, config=config, **keys)

    def _lean(self, service: str, *, only: Collection[str] = (), **settings: Any) -> Any:
        return LeanClient(self._client(service, **settings), only=only)


@lru_cache(maxsize=1)
def wiring() -> Wiring:
    """Return the wiring of this process, built from its environment at first use."""
    return Wiring(Settings.from_env(os.environ))
