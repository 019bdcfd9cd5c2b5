"""Puts the rooms of the training twin together."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from local.sagemaker.admission import Admission
from local.sagemaker.announcer import Announcer
from local.sagemaker.answer_times import AnswerTimes
from local.sagemaker.container import Outside
from local.sagemaker.imposed_changes import Control
from local.sagemaker.job_table import JobTable
from local.sagemaker.loads import Loads
from local.sagemaker.operations import Operations
from local.sagemaker.plan_book import PlanBook
from local.sagemaker.plan_operations import PlanOperations
from local.sagemaker.pool_keeper import PoolKeeper
from local.sagemaker.ports import EventSink
from local.sagemaker.quotas import AccountQuotas
from local.sagemaker.runs import Runs
from local.validation import checked, input_shape
from local.wire import AwsError, Principal

_MINUTE = timedelta(minutes=1)


class SageMakerTwin:
    """``call`` is the API; what else is public, but ``resource_tags``, are the twin's own controls."""

    def __init__(self, outside: Outside, *, events: EventSink, account_id: str, seed: int) -> None:
        clock, region, world = outside.clock, outside.region, outside.world
        announcer = Announcer(events=events, clock=clock, world=world, seed=seed)
        self._pace = AnswerTimes(world, clock, seed=seed)
        self._metrics = outside.metrics
        self._may_publish = outside.may_publish
        self._loads = Loads()
        self._table = JobTable(on_step=announcer.publish)
        arn_prefix = f"arn:aws:sagemaker:{region}:{account_id}:"
        plans = PlanBook(clock, arn_prefix=f"{arn_prefix}training-plan/")
        plan_operations = PlanOperations(book=plans, clock=clock, region=region)
        self._runs = Runs(table=self._table, outside=outside, plans=plans, seed=seed)
        quotas = AccountQuotas(world, f"arn:aws:servicequotas:{region}:{account_id}:sagemaker/")
        self._operations = Operations(
            table=self._table,
            runs=self._runs,
            pools=PoolKeeper(table=self._table, clock=clock),
            admission=Admission(
                store=outside.store, account_id=account_id, region=region, plans=plans, clock=clock
            ),
            plans=plan_operations,
            quotas=quotas,
            world=world,
            clock=clock,
            arn_prefix=f"{arn_prefix}training-job/",
        )
        control = Control(
            table=self._table, runs=self._runs, loads=self._loads, slow_stops=outside.slow_stops, clock=clock
        )
        self.fail = control.fail
        self.gpu = control.gpu
        self.slow_stop = control.slow_stop
        self.spot = control.spot
        self.withhold_capacity = outside.capacity.withhold
        self.throttled = self._pace.throttled
        self.service_quotas = quotas.call
        self.training_jobs = control.training_jobs
        self.buy_plan = plan_operations.buy
        self.change_plan = plan_operations.change

    def call(self, operation: str, params: dict[str, Any], principal: Principal) -> dict[str, Any]:
        """Answer a call of the service, times as epoch seconds. Raises ``AwsError``."""
        answer = self._operations.by_name().get(operation)
        if answer is None:
            raise AwsError("UnknownOperationException", f"The twin does not emulate {operation}.")
        shape = input_shape("sagemaker", operation)
        return self._pace.keep(operation, lambda: answer(checked(shape, params), principal))

    def owns(self, operation: str, params: Mapping[str, Any]) -> bool:
        """Tell whether ``call`` answers it: all about training jobs. Tags are for other resources too."""
        arn = params.get("ResourceArn")
        is_of_others = isinstance(arn, str) and ":sagemaker:" in arn and ":training-job/" not in arn
        return operation in self._operations.by_name() and not is_of_others

    def resource_tags(self, arn: str) -> dict[str, str] | None:
        """Return the tags of a training job; None if there is no such job."""
        job = self._operations.find(arn)
        return None if job is None else dict(job.tags)

    def measure(self, minute: datetime) -> None:
        """Publish how busy the hosts in Training were in the minute that ends now, where their roles may."""
        may_publish = cache(self._may_publish)
        for job in self._table.all():
            for sample in self._loads.samples(job, minute):
                if may_publish(job.spec.role_arn):
                    self._metrics.put(sample, at=minute - _MINUTE)

    def close(self) -> None:
        """End every container; no job changes its status by that."""
        self._pace.close()
        self._runs.close()
