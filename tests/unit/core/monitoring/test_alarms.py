"""Which alarms an attempt gets, written out as CloudWatch takes them."""

from datetime import timedelta

import pytest
from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.monitoring.alarms import (
    Alarm,
    AlarmKind,
    Wanted,
    Watched,
    alarms_of,
    full_name,
    may_be_of_another_stack,
    names_of,
    relative_name,
    wanted_of,
    watched_by,
)
from trainmaster.core.policy.governance import Idle, Utilization, Watch

from tests.builders import minutes
from tests.markdown import codes, table, text_of

P5, G5, CPU = "ml.p5.48xlarge", "ml.g5.xlarge", "ml.c5.xlarge"
IDLE = Watch(idle=Idle())
BOTH = Watch(idle=Idle(), utilization=Utilization())


def of(**counts: int) -> Vector:
    types = {
        "p5": P5,
        "g5": G5,
        "cpu": CPU,
        "p99": "ml.p99.metal",
        "x9": "ml.x9.large",
        "trn1": "ml.trn1.2xlarge",
    }
    return {Capacity(types[name]): count for name, count in counts.items()}


def made(vector: Vector, watch: Watch = IDLE) -> tuple[Alarm, ...]:
    return alarms_of("train-1", wanted_of(vector, watch), watch, stack="ml")


def test_a_job_on_one_host_has_one_alarm_in_per_cent_of_one_gpu() -> None:
    assert made(of(p5=1)) == (
        Alarm(
            name="trainmaster-ml-idle-train-1",
            description="GPUs of its busiest host below 1 % for 15 minutes. Made by trainmaster.",
            acts=True,
            hosts=("train-1/algo-1",),
            expression="FILL(m0, 800) / 8",
            below=1,
            period=minutes(5),
            periods=3,
            out_of=3,
        ),
    )


def test_idle_is_the_busiest_host_and_underused_the_least_busy_one() -> None:
    idle, underused = made(of(g5=2), BOTH)
    assert idle.expression == "MAX([FILL(m0, 100), FILL(m1, 100)]) / 1"
    assert underused.expression == "MIN([FILL(m0, 100), FILL(m1, 100)]) / 1"
    assert underused.name == "trainmaster-ml-utilization-train-1"
    assert (underused.below, underused.period, underused.periods) == (80, minutes(5), 12)
    assert underused.hosts == ("train-1/algo-1", "train-1/algo-2")


def test_ten_hosts_fit_into_one_alarm() -> None:
    (alarm,) = made(of(p5=10))
    assert len(alarm.hosts) == 10
    assert alarm.expression.count("FILL") == 10


def test_more_hosts_have_an_alarm_for_ten_each_and_one_that_acts_when_all_are_idle() -> None:
    *parts, composite = made(of(p5=23))
    assert [part.name for part in parts] == [f"trainmaster-ml-idle-train-1.{n}" for n in (1, 2, 3)]
    assert [len(part.hosts) for part in parts] == [10, 10, 3]
    assert parts[2].hosts == ("train-1/algo-21", "train-1/algo-22", "train-1/algo-23")
    assert parts[2].expression == "MAX([FILL(m0, 800), FILL(m1, 800), FILL(m2, 800)]) / 8"
    assert not any(part.acts for part in parts)
    assert (composite.name, composite.acts, composite.hosts) == ("trainmaster-ml-idle-train-1", True, ())
    assert composite.rule == (
        'ALARM("trainmaster-ml-idle-train-1.1") AND ALARM("trainmaster-ml-idle-train-1.2")'
        ' AND ALARM("trainmaster-ml-idle-train-1.3")'
    )


def test_one_underused_host_of_many_is_enough() -> None:
    composite = made(of(p5=11), Watch(utilization=Utilization()))[-1]
    assert composite.rule == (
        'ALARM("trainmaster-ml-utilization-train-1.1") OR ALARM("trainmaster-ml-utilization-train-1.2")'
    )


def test_the_last_alarm_that_fits_stays_within_what_cloudwatch_takes() -> None:
    """Names of 255 characters and rules of 10,240, for the longest names of a stack and a training job."""
    watch = Watch(utilization=Utilization())
    vector = of(p5=400)
    found = alarms_of("j" * 63, wanted_of(vector, watch), watch, stack="s" * 128)
    assert len(found) == 41
    assert max(len(alarm.name) for alarm in found) <= 255
    assert len(found[-1].rule) <= 10_240
    assert max(len(alarm.expression) for alarm in found) <= 2_048


@pytest.mark.parametrize(
    ("vector", "code"),
    [
        pytest.param(of(p99=1), "unknown-type", id="a GPU family nobody knows"),
        pytest.param(of(p5=1, cpu=2), "mixed-hosts", id="some hosts have no GPUs"),
        pytest.param(of(p5=1, g5=1), "mixed-hosts", id="hosts with different numbers of GPUs"),
        pytest.param(of(p5=401), "too-many-hosts", id="more hosts than one composite covers"),
    ],
)
def test_what_cannot_be_watched_has_no_alarm_and_a_reason(vector: Vector, code: str) -> None:
    wanted = wanted_of(vector, IDLE)
    assert wanted.unmonitored is not None
    assert (wanted.unmonitored.code, wanted.digest) == (code, None)
    assert made(vector) == ()
    assert wanted_of(vector, Watch()) == Wanted(), "a policy that asks for nothing misses nothing"


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(of(cpu=2), id="no GPUs"),
        pytest.param(of(trn1=1), id="Trainium has none"),
        pytest.param(of(x9=1), id="an unknown family that does not sound like GPUs"),
    ],
)
def test_jobs_without_gpus_are_not_watched_and_nothing_is_missing(vector: Vector) -> None:
    assert wanted_of(vector, BOTH) == Wanted()


def test_spot_instances_have_the_gpus_of_their_type() -> None:
    vector = {Capacity(P5, CapacityType.SPOT): 2}
    assert wanted_of(vector, IDLE).gpus == 8


def test_short_data_points_may_miss_the_last_one() -> None:
    """FILL would make it busy for ever."""
    (alarm,) = made(of(g5=1), Watch(idle=Idle(for_=minutes(10), period=minutes(1))))
    assert (alarm.periods, alarm.out_of) == (10, 11)
    (alarm,) = made(of(g5=1), Watch(idle=Idle(for_=timedelta(days=1), period=minutes(1))))
    assert (alarm.periods, alarm.out_of) == (1440, 1440), "CloudWatch looks back a day at most"


def test_what_the_alarms_are_made_of_changes_their_digest() -> None:
    digests = [
        wanted_of(vector, watch).digest
        for vector, watch in [
            (of(g5=1), IDLE),
            (of(g5=2), IDLE),
            (of(p5=1), IDLE),
            (of(g5=1), BOTH),
            (of(g5=1), Watch(utilization=Utilization())),
            (of(g5=1), Watch(idle=Idle(gpu_below_percent=2))),
            (of(g5=1), Watch(idle=Idle(for_=minutes(20)))),
            (of(g5=1), Watch(idle=Idle(for_=minutes(30), period=minutes(10)))),
        ]
    ]
    assert None not in digests
    assert len(set(digests)) == len(digests)
    assert digests[0] == "1 1x1, idle <1% 3/3x0:05:00"


def test_what_the_alarms_are_not_made_of_does_not() -> None:
    other = Watch(idle=Idle(warn_first=minutes(99)))
    assert wanted_of(of(g5=1), other).digest == wanted_of(of(g5=1), IDLE).digest


def test_every_reason_why_nobody_watches_a_job_is_in_the_guide() -> None:
    vectors = (of(p99=1), of(p5=1, g5=1), of(p5=401))
    reasons = [wanted_of(vector, IDLE).unmonitored for vector in vectors]
    codes_of_vectors = {reason.code for reason in reasons if reason is not None}
    rows = table(text_of("docs/idle.md"), "code", "means")
    assert {codes(row[0])[0] for row in rows} == codes_of_vectors | {
        ReasonCode.ALARM_QUOTA,
        ReasonCode.ALARM_REFUSED,
        ReasonCode.NO_METRICS,
    }


# ---- names


@pytest.mark.parametrize(
    ("name", "watched"),
    [
        pytest.param(
            "trainmaster-ml-idle-train-1",
            Watched(kind=AlarmKind.IDLE, training_job_name="train-1"),
            id="idle",
        ),
        pytest.param(
            "trainmaster-ml-utilization-a",
            Watched(kind=AlarmKind.UTILIZATION, training_job_name="a"),
            id="utilization",
        ),
        pytest.param(
            "trainmaster-ml-idle-a--b.12",
            Watched(kind=AlarmKind.IDLE, training_job_name="a--b", part=12),
            id="a part of a composite",
        ),
        pytest.param("trainmaster-ml-idle-", None, id="of nobody"),
        pytest.param("trainmaster-ml-idle-a-", None, id="not the name of a training job"),
        pytest.param("trainmaster-ml-idle-a\n", None, id="a line end behind it"),
        pytest.param("trainmaster-ml-idle-a.0", None, id="parts count from one"),
        pytest.param("trainmaster-ml-idle-" + "a" * 64, None, id="too long for a training job"),
        pytest.param("trainmaster-ml-other-a", None, id="another kind"),
        pytest.param("trainmaster-mlx-idle-a", None, id="another stack"),
        pytest.param("operator-ml-idle-a", None, id="an operator's alarm"),
    ],
)
def test_a_name_says_whom_it_watches(name: str, watched: Watched | None) -> None:
    assert watched_by(name, stack="ml") == watched


def test_an_attempts_alarms_are_known_by_their_names_the_acting_ones_first() -> None:
    assert names_of("a", hosts=10) == ("idle-a", "utilization-a")
    assert names_of("a", hosts=11) == (
        "idle-a",
        "utilization-a",
        "idle-a.1",
        "idle-a.2",
        "utilization-a.1",
        "utilization-a.2",
    )
    every = {alarm.name for alarm in made(of(p5=25), BOTH)}
    assert {full_name("ml", name) for name in names_of("train-1", hosts=25)} == every
    assert relative_name("trainmaster-ml-idle-a.1", stack="ml") == "idle-a.1"


def test_a_name_that_two_stacks_could_have_given_is_recognised() -> None:
    """Stack ``ml`` and job ``idle-a``, or stack ``ml-idle`` and job ``a``."""
    name = "trainmaster-ml-idle-idle-a"
    mine, other = watched_by(name, stack="ml"), watched_by(name, stack="ml-idle")
    assert mine is not None
    assert other is not None
    assert (mine.training_job_name, other.training_job_name) == ("idle-a", "a")
    assert may_be_of_another_stack(mine)
    assert not may_be_of_another_stack(other)
