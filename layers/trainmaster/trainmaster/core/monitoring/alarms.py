"""Which alarms watch the GPUs of an attempt, as data; CloudWatch's words.

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
"""In one look, lest a changed policy keeps jobs from starting: CloudWatch takes 3 alarms a second."""
PREFIX = "trainmaster"
NAMESPACE = "/aws/sagemaker/TrainingJobs"
METRIC = "GPUUtilization"
"""Of one host, 0 to 100 times its GPUs, each minute."""
HOSTS_OF_ONE = 10
"""Metrics that the expression of one alarm may name."""
MOST_PARTS = 40
"""Alarms in the rule of a composite: 100 are allowed, but the rule has at most 10,240 characters."""
LATE = timedelta(minutes=5)
"""Data points shorter than this may not be there yet when the alarm asks for the last one."""
LONGEST = timedelta(days=1)
"""Most that all data points of an alarm span together, where one is shorter than an hour."""

_GPU_FAMILY = re.compile(r"ml\.[gp][0-9]")
_NAME = re.compile(r"(?P<job>[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62})(?:\.(?P<part>[1-9][0-9]?))?")
"""Names of training jobs have no dots."""


class AlarmKind(StrEnum):
    IDLE = "idle"
    UTILIZATION = "utilization"


class AlarmState(StrEnum):
    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmReading:
    """What CloudWatch says of an alarm."""

    state: AlarmState
    since: datetime
    """To the millisecond, as it is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One metric alarm over the hosts of an attempt, or a composite of such alarms."""

    name: str
    description: str
    acts: bool
    """Its transitions go to the alarm topic."""
    hosts: tuple[str, ...] = ()
    """Values of dimension Host; empty: it is a composite."""
    expression: str = ""
    """Metric math over ``m0``, ``m1`` ... of its hosts; in per cent of one GPU."""
    below: int = 0
    period: timedelta = timedelta(minutes=5)
    periods: int = 1
    """Data points that must be below ..."""
    out_of: int = 1
    """... of the last so many."""
    rule: str = ""
    """AlarmRule of a composite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How the GPUs of an attempt are to be watched."""

    hosts: int = 0
    gpus: int = 0
    """Of each host."""
    digest: str | None = None
    """Changes with everything that the alarms are made of but their names; None: there are to be none."""
    unmonitored: Reason | None = None
    """Why there are none although the policy wants some."""

    def host_names(self, training_job_name: str) -> tuple[str, ...]:
        """List the values of dimension Host that SageMaker gives the hosts of an attempt."""
        return tuple(f"{training_job_name}/algo-{number}" for number in range(1, self.hosts + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What the name of an alarm says."""

    kind: AlarmKind
    training_job_name: str
    part: int | None = None
    """Of a composite's alarms; None: it acts itself."""


# ---- names


def full_name(stack: str, relative: str) -> str:
    """At most 219 of CloudWatch's 255 characters: a stack's name has up to 128."""
    return f"{PREFIX}-{stack}-{relative}"


def alarm_name(stack: str, kind: str, training_job_name: str) -> str:
    return full_name(stack, f"{kind}-{training_job_name}")


def relative_name(name: str, *, stack: str) -> str:
    return name.removeprefix(full_name(stack, ""))


def watched_by(name: str, *, stack: str) -> Watched | None:
    """Whom an alarm of this stack watches; None: it is none of ours."""
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
    """``trainmaster-a-idle-idle-x``: of ``idle-x`` in stack ``a``, or of ``x`` in stack ``a-idle``."""
    return watched.training_job_name.startswith(tuple(f"{kind}-" for kind in AlarmKind))


def names_of(training_job_name: str, *, hosts: int) -> tuple[str, ...]:
    """All alarms that an attempt may have, without the stack; those that act first, which is how they go."""
    acting = [f"{kind}-{training_job_name}" for kind in AlarmKind]
    parts = range(1, _parts(hosts) + 1) if hosts > HOSTS_OF_ONE else ()
    return (*acting, *(f"{name}.{part}" for name in acting for part in parts))


def _parts(hosts: int) -> int:
    return -(-hosts // HOSTS_OF_ONE)


# ---- what is wanted


def wanted_of(vector: Vector, watch: Watch) -> Wanted:
    """What the policy wants for an attempt in Training that holds these instances."""
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
    hosts, each = sum(vector.values()), different.pop() if different else 0
    if not each:
        return Wanted()
    if _parts(hosts) > MOST_PARTS:
        message = f"it has more than {MOST_PARTS * HOSTS_OF_ONE} hosts, more than one alarm can cover"
        return Wanted(unmonitored=Reason(code=ReasonCode.TOO_MANY_HOSTS, message=message))
    return Wanted(hosts=hosts, gpus=each, digest=_digest(hosts, each, watch))


def _digest(hosts: int, each: int, watch: Watch) -> str:
    """Legible, because it is short enough; the number in front rises when the alarms are made otherwise."""
    tests = (f"{one.kind} <{one.below}% {one.periods}/{one.out_of}x{one.period}" for one in _tests(watch))
    return ", ".join([f"1 {hosts}x{each}", *tests])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Test:
    """What one kind of alarm asks."""

    kind: AlarmKind
    over_hosts: str
    """Function of metric math."""
    below: int
    period: timedelta
    lasts: timedelta

    @property
    def periods(self) -> int:
        return max(self.lasts // self.period, 1)

    @property
    def out_of(self) -> int:
        """One more where the last data point is often late: filled in as busy, it would always be in the way.

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
    """In the order they are to be made: a composite after its parts."""
    if wanted.digest is None:
        return ()
    hosts, each = wanted.host_names(training_job_name), wanted.gpus
    named = ((test, alarm_name(stack, test.kind, training_job_name)) for test in _tests(watch))
    return tuple(alarm for test, name in named for alarm in _of_test(test, name, hosts, each))


def _of_test(test: _Test, name: str, hosts: tuple[str, ...], each: int) -> Iterator[Alarm]:
    if len(hosts) <= HOSTS_OF_ONE:
        yield _over(test, name, hosts, each, acts=True)
        return
    names = [f"{name}.{part}" for part in range(1, _parts(len(hosts)) + 1)]
    for number, part in enumerate(names):
        covered = hosts[number * HOSTS_OF_ONE : (number + 1) * HOSTS_OF_ONE]
        yield _over(test, part, covered, each, acts=False)
    joined = " AND " if test.kind is AlarmKind.IDLE else " OR "
    rule = joined.join(f'ALARM("{part}")' for part in names)
    yield Alarm(name=name, description=_description(test), acts=True, rule=rule)


def _over(test: _Test, name: str, hosts: tuple[str, ...], each: int, *, acts: bool) -> Alarm:
    """A silent host counts as busy: a host that starts, restarts or saves is no reason to stop the others."""
    series = [f"FILL(m{number}, {100 * each})" for number in range(len(hosts))]
    over = series[0] if len(series) == 1 else f"{test.over_hosts}([{', '.join(series)}])"
    return Alarm(
        name=name,
        description=_description(test),
        acts=acts,
        hosts=hosts,
        expression=f"{over} / {each}",
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
    """Also of a paused pool: watching starts nothing."""
    if (watch := snapshot.watch) is None:
        return []
    lacking = (job for job in snapshot.running if _lacks(job, watch, now=now))
    return [WatchGpus(job=job, watch=watch) for job in islice(lacking, AT_ONCE)]


def _lacks(job: RunningJob, watch: Watch, *, now: datetime) -> bool:
    """From Training on: before it there is nothing to measure."""
    if job.state is not JobState.RUNNING or job.training_since is None:
        return False
    if job.watch.monitor_again_at is not None and now < job.watch.monitor_again_at:
        return False
    wanted = wanted_of(job.vector, watch)
    code = wanted.unmonitored.code if wanted.unmonitored else None
    reported = None if job.unmonitored is ReasonCode.NO_METRICS else job.unmonitored  # it has its alarms
    return (wanted.digest, code) != (job.watch.monitored, reported)
