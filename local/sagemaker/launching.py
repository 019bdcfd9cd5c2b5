"""Gets a training job its instances: on demand, on spot, from a warm pool, or of its training plan."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from typing import TypeAlias

from local.sagemaker.container import Outside
from local.sagemaker.job_table import JobTable
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.mailbox import Fail, Kinds, Mailbox, Message, RoomOnPlan, Stop, WindowClosed
from local.sagemaker.plan_book import Holder, PlanBook
from local.sagemaker.statuses import Secondary
from local.sagemaker.training_plans import LONGEST_PENDING, PlanStatus, TrainingPlan, Window, active_until
from local.worlds.endings import NO_CAPACITY, pending_end

_HEEDED: Kinds = (Stop, Fail)
_HEEDED_ON_PLAN: Kinds = (Stop, Fail, RoomOnPlan)

Launch: TypeAlias = TrainingJob | Secondary | Message
"""The job with its instances, the status in which it ends without any, or a message that came first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    table: JobTable
    outside: Outside
    plans: PlanBook
    mailbox: Mailbox

    def launch(self, job: TrainingJob, draw: Random) -> Launch:
        """Wait for the instances of a job that is Pending; ``draw`` decides how its pending time ends."""
        if job.spec.plan_arn is not None:
            return self._on_plan(job, job.spec.plan_arn, draw)
        is_warm, choices = job.warm_pool is not None, job.spec.clusters
        allotted = choices[0] if is_warm else self.outside.capacity.allot(choices)
        if allotted is None:
            return self._starve(job.spec.max_pending, draw)
        return self.table.update(job.name, lambda job: replace(job, allotted=allotted))

    def _starve(self, patience: timedelta | None, draw: Random) -> Launch:
        """Handle missing instances: if the world lets it, the job waits for its pending limit."""
        if self.outside.world.now.pending_end is None or patience is None:
            return Fail(reason=NO_CAPACITY)
        message = self.mailbox.wait(_HEEDED, patience)
        return self._ended_pending(draw) if message is None else message

    def _ended_pending(self, draw: Random) -> Launch:
        """End a job that waited as long as it may; where the world says nothing of it, it is Stopped."""
        dialect = self.outside.world.now.pending_end
        if dialect is None:
            return Secondary.STOPPED
        end = pending_end(dialect, draw)
        if end.failure_reason is not None:
            return Fail(reason=end.failure_reason)
        return Secondary(end.secondary_status)

    def _on_plan(self, job: TrainingJob, arn: str, draw: Random) -> Launch:
        """Wait for a window of the plan with enough free instances, and take them until it closes."""
        post, since = self.mailbox.post, self.outside.clock.now()
        holder = Holder(
            job=job.name,
            plan_arn=arn,
            instances=sum(group.count for group in job.spec.clusters[0]),
            on_room=lambda: post(RoomOnPlan()),
        )
        while (window := self.plans.take(holder)) is None:
            ended = self._wait_for_room(job, self.plans.get(arn), since, draw)
            if ended is not None:
                self.plans.release(job.name)
                return ended
        self.plans.when_closed(holder, lambda: post(WindowClosed()))
        return self.table.update(job.name, lambda job: _placed(job, window))

    def _wait_for_room(
        self, job: TrainingJob, plan: TrainingPlan, since: datetime, draw: Random
    ) -> Launch | None:
        """Wait until it is worth another look, and return None; else what ended the waiting."""
        now, limit = self.outside.clock.now(), job.spec.max_pending
        if plan.status(now) in {PlanStatus.EXPIRED, PlanStatus.FAILED}:
            return Fail(reason=_no_room(plan, f"it is {plan.status(now).value}"))
        patience = LONGEST_PENDING if limit is None else min(limit, LONGEST_PENDING)
        until = active_until(plan.windows, since, patience)
        if until is not None and now >= until:
            if patience is limit:
                return self._ended_pending(draw)
            return Fail(reason=_no_room(plan, "the job was pending for 2 days"))
        looks = [until, plan.opens_after(now), plan.paid_at if now < plan.paid_at else None, plan.end]
        look = min(instant for instant in looks if instant is not None)
        message = self.mailbox.wait(_HEEDED_ON_PLAN, look - now)
        return None if message is None or isinstance(message, RoomOnPlan) else message


def _placed(job: TrainingJob, window: Window) -> TrainingJob:
    return replace(job, allotted=job.spec.clusters[0], block_end=window.end)


def _no_room(plan: TrainingPlan, why: str) -> str:
    """Write the failure; the guide names the error, the words after it are the twin's own."""
    return f"InsufficientCapacityError: Unable to provision instances of training plan {plan.arn}: {why}."
