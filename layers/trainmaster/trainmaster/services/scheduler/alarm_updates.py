"""Makes the alarms of a job's GPUs: first the alarms, then the note; after a death in between, once more."""

from collections.abc import Sequence

from trainmaster.core.errors import AlarmQuotaError, AlarmRefusedError
from trainmaster.core.jobs.model import Attempt, Job, Reason
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring import reactions
from trainmaster.core.monitoring.alarms import Alarm, alarms_of, full_name, names_of, wanted_of
from trainmaster.core.policy.governing import Watch
from trainmaster.services.scheduler.context import Pass

QUOTA = "alarm-quota"
REFUSED = "alarm-refused"


def watch_gpus(job: Job, watch: Watch, now: Pass) -> None:
    live = job.live
    assert live is not None, f"{job.name} is not live"
    wanted = wanted_of(live.vector, watch)
    alarms = alarms_of(live.training_job_name, wanted, watch, stack=now.stack)
    try:
        now.alarms.put(alarms)
        now.alarms.delete(_left_over(live, alarms, stack=now.stack))
    except (AlarmQuotaError, AlarmRefusedError) as error:
        code = QUOTA if isinstance(error, AlarmQuotaError) else REFUSED
        message = f"{error.detail}; its GPUs are not watched, and it is tried again every 15 minutes"
        after = reactions.refused(job, Reason(code=code, message=message), now=now.clock())
    else:
        after = reactions.guarded(job, wanted)
    now.store.commit([Change(before=job, after=after)], at=now.clock())


def _left_over(live: Attempt, wanted: Sequence[Alarm], *, stack: str) -> tuple[str, ...]:
    """Alarms of a policy that wanted more."""
    if live.guarded is None:
        return ()
    kept = {alarm.name for alarm in wanted}
    relative = names_of(live.training_job_name, hosts=live.shape.instances)
    return tuple(name for one in relative if (name := full_name(stack, one)) not in kept)
