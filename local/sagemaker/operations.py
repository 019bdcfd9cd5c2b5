"""The operations of the SageMaker API that the twin answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from local.clock import TwinClock
from local.sagemaker import job_listing, tags
from local.sagemaker.admission import Admission
from local.sagemaker.job_table import NOT_FOUND, JobTable
from local.sagemaker.jobs import TrainingJob, Transition
from local.sagemaker.mailbox import Stop
from local.sagemaker.plan_operations import PlanOperations
from local.sagemaker.pool_keeper import PoolKeeper, has_pool
from local.sagemaker.quotas import AccountQuotas
from local.sagemaker.runs import Runs
from local.sagemaker.spec import TrainingSpec
from local.sagemaker.statuses import Primary, Secondary
from local.sagemaker.views import description
from local.wire import AwsError, Principal
from local.world_in_force import WorldInForce

Params = Mapping[str, Any]
Result = dict[str, Any]

_UPDATABLE = ("ProfilerConfig", "ProfilerRuleConfigurations", "RemoteDebugConfig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """Each takes checked parameters and the caller."""

    table: JobTable
    runs: Runs
    pools: PoolKeeper
    admission: Admission
    plans: PlanOperations
    quotas: AccountQuotas
    world: WorldInForce
    clock: TwinClock
    arn_prefix: str
    """ARN of a training job without its name."""

    def by_name(self) -> Mapping[str, Callable[[Params, Principal], Result]]:
        return {
            "CreateTrainingJob": self.create,
            "DescribeTrainingJob": lambda params, _: description(self._named(params), now=self.clock.now()),
            "ListTrainingJobs": lambda params, _: self.list(params),
            "StopTrainingJob": lambda params, _: self.stop(params),
            "UpdateTrainingJob": lambda params, _: self.update(params),
            "DeleteTrainingJob": lambda params, _: self.delete(params),
            "AddTags": lambda params, _: self.add_tags(params),
            "ListTags": lambda params, _: self.list_tags(params),
            "DeleteTags": lambda params, _: self.delete_tags(params),
            # none starts at the twin; what the hooks list are the queue's own
            "ListHyperParameterTuningJobs": lambda _, __: {"HyperParameterTuningJobSummaries": []},
            **self.plans.by_name(),
        }

    def create(self, params: Params, caller: Principal) -> Result:
        self.admission.admit(params)
        spec = TrainingSpec.from_request(params)
        now = self.clock.now()
        job = TrainingJob(
            name=params["TrainingJobName"],
            arn=self.arn_prefix + params["TrainingJobName"],
            created_by=caller.arn,
            created_at=now,
            modified_at=now,
            request=params,
            spec=spec,
            tags=tags.as_map(params.get("Tags", ())),
            transitions=(Transition(status=Secondary.STARTING, start=now),),
        )
        with self.table.changing():
            self.quotas.check(params, self.table.all(), warm=self.pools.kept_beside(job))
            self.runs.start(self.pools.add(job))
        return {"TrainingJobArn": job.arn}

    def list(self, params: Params) -> Result:
        now = self.clock.now()
        return job_listing.page([job for job in self.table.all() if self._is_readable(job)], params, now=now)

    def stop(self, params: Params) -> Result:
        """Stop a job: it is Stopping on return; stopping it twice is no error, stopping a finished one is."""

        def stopping(job: TrainingJob) -> TrainingJob:
            if job.is_final:
                raise AwsError(
                    "ValidationException",
                    f"The request was rejected because the training job is in status {job.primary.value}.",
                )
            return (
                job if job.primary is Primary.STOPPING else job.moved_to(Secondary.STOPPING, self.clock.now())
            )

        self.table.update(params["TrainingJobName"], stopping)
        self.runs.post(params["TrainingJobName"], Stop(end=Secondary.STOPPED))
        return {}

    def update(self, params: Params) -> Result:
        """Update the retention of a warm pool after the end, or the rest before it."""
        name = params["TrainingJobName"]
        if "ResourceConfig" in params:
            self.quotas.check_keep_alive(params["ResourceConfig"])
            return {"TrainingJobArn": self.pools.keep(name, params["ResourceConfig"]).arn}

        def updated(job: TrainingJob) -> TrainingJob:
            if job.primary is not Primary.IN_PROGRESS:
                raise AwsError(
                    "ValidationException",
                    f"Training job {job.name} cannot be updated in status {job.primary.value}.",
                )
            changes = {name: params[name] for name in _UPDATABLE if name in params}
            return replace(job, request={**job.request, **changes}, modified_at=self.clock.now())

        return {"TrainingJobArn": self.table.update(name, updated).arn}

    def delete(self, params: Params) -> Result:
        def check(job: TrainingJob) -> None:
            if not job.is_final:
                raise AwsError(
                    "ResourceInUse",
                    f"Training job {job.name} is in status {job.primary.value}; only a training job in a "
                    "terminal state can be deleted.",
                )
            if has_pool(job, self.clock.now()):
                raise AwsError(
                    "ResourceInUse",
                    f"Training job {job.name} retains a warm pool with status Available. Terminate it first, "
                    "by an update of its KeepAlivePeriodInSeconds to 0.",
                )

        self.table.remove(params["TrainingJobName"], check)
        return {}

    def list_tags(self, params: Params) -> Result:
        job = self._with_arn(params)
        if not self._is_readable(job):
            raise AwsError("ValidationException", NOT_FOUND)
        return {"Tags": tags.as_list(job.tags)}

    def add_tags(self, params: Params) -> Result:
        name = self._with_arn(params).name
        job = self.table.update(name, lambda job: tags.added(job, params["Tags"]))
        return {"Tags": tags.as_list(job.tags)}

    def delete_tags(self, params: Params) -> Result:
        name = self._with_arn(params).name
        self.table.update(name, lambda job: tags.removed(job, params["TagKeys"]))
        return {}

    def find(self, arn: str) -> TrainingJob | None:
        job = self.table.find(arn.removeprefix(self.arn_prefix))
        return job if job is not None and job.arn == arn else None

    def _named(self, params: Params) -> TrainingJob:
        job = self.table.get(params["TrainingJobName"])
        if not self._is_readable(job):
            raise AwsError("ValidationException", NOT_FOUND)
        return job

    def _is_readable(self, job: TrainingJob) -> bool:
        """Tell whether reads know the job yet: one that was just created exists, but cannot be read."""
        return self.clock.now() >= job.created_at + timedelta(seconds=self.world.now.read_delay_seconds)

    def _with_arn(self, params: Params) -> TrainingJob:
        job = self.find(params["ResourceArn"])
        if job is None:
            raise AwsError("ValidationException", NOT_FOUND)
        return job
