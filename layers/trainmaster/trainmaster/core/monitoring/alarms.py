"""Alarms on the GPUs of an attempt, as data, in CloudWatch's words.

Facts behind the numbers: CloudWatch API reference, PutMetricAlarm and PutCompositeAlarm; SageMaker developer
guide, "Metrics for monitoring SageMaker AI with Amazon CloudWatch", training jobs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Vector
from trainmaster.core.jobs.model import JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.memory.accelerators import gpus
from trainmaster.core.planning.actions import WatchGpus
from trainmaster.core.planning.snapshot import RunningJob, Snapshot
from trainmaster.core.policy.governance import Watch

AT_ONCE = 20
"""Most attempts in one plan, lest they delay starts: CloudWatch takes 3 alarms a second."""
PREFIX = "trainmaster"
NAMESPACE = "/aws/sagemaker/TrainingJobs"
METRIC = "GPUUtilization"
"""Utilization of one host, 0 to 100 times its number of GPUs, each minute."""
HOSTS_OF_ONE = 10
"""Most metrics that the expression of one alarm may name."""
MOST_PARTS = 40
"""Most alarms in the rule of a composite: 100 are allowed, but the rule has at most 10,240 characters."""
LATE = timedelta(minutes=5)
"""Period below which the last data point may not be there yet when the alarm asks for it."""
LONGEST = timedelta(days=1)
"""Most time that all data points of an alarm span together, where one is shorter than an hour."""

_GPU_FAMILY = re.compile(r"ml\.[gp][0-9]")
_NAME = re.compile(r"(?P<job>[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62})(?:\.(?P<part>[1-9][0-9]?))?")
"""Name of an alarm after its kind; names of training jobs have no dots."""


class AlarmKind(StrEnum):
    IDLE = "idle"
    UTILIZATION = "utilization"


class AlarmState(StrEnum):
    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmReading:
    """State of an alarm as CloudWatch reports it."""

    state: AlarmState
    since: datetime
    """Time of the last transition, to the millisecond, as it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One metric alarm over the hosts of an attempt, or a composite of such alarms."""

    name: str
    description: str
    acts: bool
    """Whether its transitions go to the alarm topic."""
    hosts: tuple[str, ...] = ()
    """Values of dimension Host; empty for a composite."""
    expression: str = ""
    """Metric math over ``m0``, ``m1`` ... of its hosts; in per cent of one GPU."""
    below: int = 0
    period: timedelta = timedelta(minutes=5)
    periods: int = 1
    """Number of data points that must be below ``below`` ..."""
    out_of: int = 1
    """... among the last ``out_of``."""
    rule: str = ""
    """AlarmRule; only of a composite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Monitoring that the policy wants for the GPUs of an attempt."""

    hosts: int = 0
    gpus: int = 0
    """Number of GPUs of each host."""
    digest: str | None = None
    """Text that changes with all that the alarms are made of but their names; None: there are to be none."""
    unmonitored: Reason | None = None
    """Reason why there are none although the policy wants some."""

    def host_names(self, training_job_name: str) -> tuple[str, ...]:
        """List the values of dimension Host that SageMaker gives the hosts of an attempt."""
        return tuple(f"{training_job_name}/algo-{number}" for number in range(1, self.hosts + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Parts of an alarm's name."""

    kind: AlarmKind
    training_job_name: str
    part: int | None = None
    """Number of a composite's alarm; None: the alarm acts itself."""


# ---- names


def full_name(stack: str, relative: str) -> str:
    """Return an alarm's full name; with a stack's name of up to 128, at most 219 of 255 characters."""
    return f"{PREFIX}-{stack}-{relative}"


def alarm_name(stack: str, kind: str, training_job_name: str) -> str:
    return full_name(stack, f"{kind}-{training_job_name}")


def relative_name(name: str, *, stack: str) -> str:
    return name.removeprefix(full_name(stack, ""))


def watched_by(name: str, *, stack: str) -> Watched | None:
    """Return the job and kind that an alarm of this stack watches; None if it is none of ours."""
    prefix = full_name(stack, "")
    if not name.startswith(prefix):
        return None
    kind, _, rest = name.removeprefix(prefix).partition("-")
    match = _NAME.fullmatch(rest)
    if match is None or kind not in tuple(AlarmKind):
        return None
    part = int(match["part"]) if match["part"] else None
    return Watched(kind=AlarmKind(kind), training_job_name=match["job"], part=part)


def may_be_of_another_stack(watched: Watched) -> bool:
    """Tell whether an alarm like ``trainmaster-a-idle-idle-x`` may be of stack ``a`` or of ``a-idle``."""
    return watched.training_job_name.startswith(tuple(f"{kind}-" for kind in AlarmKind))


def names_of(training_job_name: str, *, hosts: int) -> tuple[str, ...]:
    """Return the names of all alarms an attempt may have, without the stack, in the order of deletion."""
    acting = [f"{kind}-{training_job_name}" for kind in AlarmKind]
    parts = range(1, _parts(hosts) + 1) if hosts > HOSTS_OF_ONE else ()
    return (*acting, *(f"{name}.{part}" for name in acting for part in parts))


def _parts(hosts: int) -> int:
    return -(-hosts // HOSTS_OF_ONE)


# ---- what is wanted


def wanted_of(vector: Vector, watch: Watch) -> Wanted:
    """Return what the policy wants for an attempt in Training that holds these instances."""
    if watch.idle is None and watch.utilization is None:
        return Wanted()
    counts = {capacity.instance_type: gpus(capacity.instance_type) for capacity in vector}
    unknown = sorted(name for name, count in counts.items() if count is None and _GPU_FAMILY.match(name))
    if unknown:
        message = f"the number of GPUs of {', '.join(unknown)} is not known; they are not monitored"
        return Wanted(unmonitored=Reason(code=ReasonCode.UNKNOWN_TYPE, message=message))
    different = {count or 0 for count in counts.values()}
    if len(different) > 1:
        message = "its hosts have different numbers of GPUs, and their names do not say which has how many"
        return Wanted(unmonitored=Reason(code=ReasonCode.MIXED_HOSTS, message=message))
    hosts, gpus_per_host = sum(vector.values()), different.pop() if different else 0
    if not gpus_per_host:
        return Wanted()
    if _parts(hosts) > MOST_PARTS:
        message = f"it has more than {MOST_PARTS * HOSTS_OF_ONE} hosts, more than one alarm can cover"
        return Wanted(unmonitored=Reason(code=ReasonCode.TOO_MANY_HOSTS, message=message))
    return Wanted(hosts=hosts, gpus=gpus_per_host, digest=_digest(hosts, gpus_per_host, watch))


def _digest(hosts: int, gpus_per_host: int, watch: Watch) -> str:
    """Render what the alarms are made of; the first number rises when this code makes them differently."""
    tests = (
        f"{test.kind} <{test.below}% {test.periods}/{test.out_of}x{test.period}" for test in _tests(watch)
    )
    return ", ".join([f"1 {hosts}x{gpus_per_host}", *tests])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """The test of one kind of alarm."""

    kind: AlarmKind
    over_hosts: str
    """Function of metric math that combines the hosts."""
    below: int
    period: timedelta
    lasts: timedelta

    @property
    def periods(self) -> int:
        return max(self.lasts // self.period, 1)

    @property
    def out_of(self) -> int:
        """Number of data points evaluated: one more if the last is often late and then filled in as busy.

        That is how CloudWatch's user guide has FILL used in alarms ("Using metric math", FILL).
        """
        late = self.period < LATE and (self.periods + 1) * self.period <= LONGEST
        return self.periods + 1 if late else self.periods


def _tests(watch: Watch) -> Iterator[_Test]:
    if (idle := watch.idle) is not None:
        yield _Test(
            kind=AlarmKind.IDLE,
            over_hosts="MAX",
            below=idle.gpu_below_percent,
            period=idle.period,
            lasts=idle.for_,
        )
    if (utilization := watch.utilization) is not None:
        yield _Test(
            kind=AlarmKind.UTILIZATION,
            over_hosts="MIN",
            below=utilization.gpu_below_percent,
            period=utilization.PERIOD,
            lasts=utilization.for_,
        )


# ---- the alarms


def alarms_of(training_job_name: str, wanted: Wanted, watch: Watch, *, stack: str) -> tuple[Alarm, ...]:
    """Return the alarms in the order they are to be made: a composite after its parts."""
    if wanted.digest is None:
        return ()
    hosts, gpus_per_host = wanted.host_names(training_job_name), wanted.gpus
    named = ((test, alarm_name(stack, test.kind, training_job_name)) for test in _tests(watch))
    return tuple(alarm for test, name in named for alarm in _of_test(test, name, hosts, gpus_per_host))


def _of_test(test: _Test, name: str, hosts: tuple[str, ...], gpus_per_host: int) -> Iterator[Alarm]:
    if len(hosts) <= HOSTS_OF_ONE:
        yield _over(test, name, hosts, gpus_per_host, acts=True)
        return
    names = [f"{name}.{part}" for part in range(1, _parts(len(hosts)) + 1)]
    for number, part in enumerate(names):
        covered = hosts[number * HOSTS_OF_ONE : (number + 1) * HOSTS_OF_ONE]
        yield _over(test, part, covered, gpus_per_host, acts=False)
    # Idle if the busiest host is, so all parts must be in ALARM; underused as soon as one host is.
    joined = " AND " if test.kind is AlarmKind.IDLE else " OR "
    rule = joined.join(f'ALARM("{part}")' for part in names)
    yield Alarm(name=name, description=_description(test), acts=True, rule=rule)


def _over(test: _Test, name: str, hosts: tuple[str, ...], gpus_per_host: int, *, acts: bool) -> Alarm:
    """Return an alarm over hosts; a silent host, which may start, restart or save, counts as busy."""
    series = [f"FILL(m{number}, {100 * gpus_per_host})" for number in range(len(hosts))]
    over = series[0] if len(series) == 1 else f"{test.over_hosts}([{', '.join(series)}])"
    return Alarm(
        name=name,
        description=_description(test),
        acts=acts,
        hosts=hosts,
        expression=f"{over} / {gpus_per_host}",
        below=test.below,
        period=test.period,
        periods=test.periods,
        out_of=test.out_of,
    )


def _description(test: _Test) -> str:
    host = "busiest host" if test.kind is AlarmKind.IDLE else "least busy host"
    for_long = f"for {test.lasts // timedelta(minutes=1)} minutes"
    return f"GPUs of its {host} below {test.below} % {for_long}. Made by trainmaster."


def missing_alarms(snapshot: Snapshot, *, now: datetime) -> list[WatchGpus]:
    """Return the alarms to be made; also of a paused pool, as monitoring starts nothing."""
    if (watch := snapshot.watch) is None:
        return []
    lacking = (job for job in snapshot.running if _lacks(job, watch, now=now))
    return [WatchGpus(job=job, watch=watch) for job in islice(lacking, AT_ONCE)]


def _lacks(job: RunningJob, watch: Watch, *, now: datetime) -> bool:
    """Tell whether alarms are to be made: only from Training on, as before it there is nothing to measure."""
    if job.state is not JobState.RUNNING or job.training_since is None:
        return False
    if job.watch.monitor_again_at is not None and now < job.watch.monitor_again_at:
        return False
    wanted = wanted_of(job.vector, watch)
    code = wanted.unmonitored.code if wanted.unmonitored else None
    reported = None if job.unmonitored is ReasonCode.NO_METRICS else job.unmonitored  # it has its alarms
    return (wanted.digest, code) != (job.watch.monitored, reported)
