"""Makes the alarms of running jobs' GPUs as the policy wants them, and records what came of it."""

from collections.abc import Sequence

from trainmaster.core.errors import AlarmQuotaError, AlarmRefusedError
from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring import alarm_reactions
from trainmaster.core.monitoring.alarms import Alarm, alarms_of, full_name, names_of, wanted_of
from trainmaster.core.policy.governance import Watch
from trainmaster.services.scheduler.context import PassContext


def watch_gpus(job: Job, watch: Watch, context: PassContext) -> None:
    """Make the alarms of a running job's GPUs as the policy requires."""
    live = job.live_attempt
    wanted = wanted_of(live.vector, watch)
    alarms = alarms_of(live.training_job_name, wanted, watch, stack=context.stack)
    try:
        context.alarms.put(alarms)
        context.alarms.delete(_left_over(live, alarms, stack=context.stack))
    except (AlarmQuotaError, AlarmRefusedError) as error:
        code = ReasonCode.ALARM_QUOTA if isinstance(error, AlarmQuotaError) else ReasonCode.ALARM_REFUSED
        message = f"{error.detail}; its GPUs are not watched, and it is tried again every 15 minutes"
        after = alarm_reactions.refused(job, Reason(code=code, message=message), now=context.clock())
    else:
        after = alarm_reactions.monitored(job, wanted)
    context.store.commit([Change(before=job, after=after)], at=context.clock())


def _left_over(live: Attempt, wanted: Sequence[Alarm], *, stack: str) -> tuple[str, ...]:
    """Return the alarms that an earlier policy required and this one does not."""
    if live.watch.monitored is None:
        return ()
    kept = {alarm.name for alarm in wanted}
    relative = names_of(live.training_job_name, hosts=live.shape.instances)
    return tuple(name for alarm in relative if (name := full_name(stack, alarm)) not in kept)
