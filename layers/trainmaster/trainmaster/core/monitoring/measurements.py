"""Check whether CloudWatch has data of a job's GPUs: without any, an idle alarm reads OK for ever."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Attempt, Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.monitoring.alarm_reactions import is_watched
from trainmaster.core.monitoring.alarms import METRIC, wanted_of
from trainmaster.core.planning.snapshot import RunningJob
from trainmaster.core.policy.governance import Watch

FIRST_LOOK = timedelta(minutes=15)
"""Time after the start of Training. Data points come each minute, the first ones some minutes late."""
LAST_LOOK = timedelta(minutes=30)
"""Time after which an attempt is not checked: it may have begun before an upgrade, and one check is
enough."""
MOST_HOSTS = 500
"""Most hosts in one GetMetricData. Source: CloudWatch API reference, GetMetricData, MetricDataQueries."""
RIGHT = "cloudwatch:PutMetricData"
"""Right of a training role by which SageMaker's agent publishes the metrics of its hosts."""


def due_looks(live: Iterable[RunningJob], watch: Watch, *, now: datetime) -> dict[str, RunningJob]:
    """Choose the attempts to check, those that trained first at the front, as many as one call takes.

    Args:
        live: The rows of all live jobs.
        watch: Monitoring of GPUs by the policy in force.
        now: UTC.

    Returns:
        The row of each by the name of its training job; of all together at most ``MOST_HOSTS`` hosts.
    """
    wanting = (entry for entry in live if _is_due(entry, watch, now=now))
    chosen: dict[str, RunningJob] = {}
    left = MOST_HOSTS
    for entry in sorted(wanting, key=lambda entry: (entry.training_since or now, entry.name)):
        left -= wanted_of(entry.vector, watch).hosts
        if left < 0:
            break
        chosen[entry.training_job_name] = entry
    return chosen


def _is_due(entry: RunningJob, watch: Watch, *, now: datetime) -> bool:
    """Tell whether an attempt is to be checked.

    One without alarms for another reason is reported for that.
    """
    if entry.state is not JobState.RUNNING or entry.training_since is None:
        return False
    if entry.watch.metrics_sought_at is not None:
        return False
    in_time = FIRST_LOOK <= now - entry.training_since < LAST_LOOK
    return in_time and entry.unmonitored is None and wanted_of(entry.vector, watch).digest is not None


def is_conclusive(job: Job, training_job_name: str) -> bool:
    """Tell whether silence of its hosts is conclusive: the attempt has been in Training all the time."""
    live = job.live
    if live is None or live.training_job_name != training_job_name or not is_watched(job):
        return False
    return not live.spot.interruptions and live.watch.metrics_sought_at is None


def sought(job: Job, silent: Collection[str], *, hosts: int, role: str, now: datetime) -> Job:
    """Record on the job that data of its GPUs was looked for, and what is missing.

    Args:
        job: It has been in Training for ``FIRST_LOOK`` at least, without an interruption.
        silent: Its hosts of which CloudWatch has no data point.
        hosts: Number of all its hosts.
        role: ARN of the role that the training job runs under; read where a host is silent.
        now: UTC.
    """
    live = job.live_attempt
    watch = replace(live.watch, metrics_sought_at=now)
    reason = live.unmonitored
    if silent:
        reason = Reason(code=ReasonCode.NO_METRICS, message=_message(live, silent, hosts, role=role))
    return replace(job, live=replace(live, watch=watch, unmonitored=reason))


def _message(live: Attempt, silent: Collection[str], hosts: int, *, role: str) -> str:
    since = f"CloudWatch has no {METRIC} of"
    idle = "so nobody would notice that they are idle"
    if len(silent) < hosts:
        named = ", ".join(sorted(host.removeprefix(f"{live.training_job_name}/") for host in silent)[:5])
        return f"{since} {len(silent)} of its {hosts} hosts ({named}), {idle}: a silent host counts as busy"
    silent_hosts = "its host" if hosts == 1 else f"any of its {hosts} hosts"
    after = f"after {FIRST_LOOK // timedelta(minutes=1)} minutes of Training"
    return f"{since} {silent_hosts} {after}, {idle}: most likely role {role} lacks {RIGHT}"
