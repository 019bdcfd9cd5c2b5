"""How busy hosts are: default, by host, from a minute on."""

from datetime import timedelta

from local.sagemaker.loads import Load, Loads, Sample
from local.sagemaker.statuses import Secondary
from tests.unit.local.sagemaker.test_jobs import NOON, a_job, walked

MINUTE = timedelta(minutes=1)


def percents(loads: Loads, host: str, *minutes: float) -> list[float]:
    return [loads.percent("j", host, minute * MINUTE) for minute in minutes]


def test_a_host_is_busy_unless_somebody_says_otherwise() -> None:
    assert percents(Loads(), "algo-1", 0, 60) == [95.0, 95.0]


def test_a_load_counts_from_its_minute_on() -> None:
    loads = Loads()
    loads.set("j", Load(host=None, percent=0, since=10 * MINUTE))
    assert percents(loads, "algo-1", 9.9, 10, 11) == [95.0, 0, 0]
    assert loads.percent("other", "algo-1", 11 * MINUTE) == 95.0


def test_a_load_of_one_host_leaves_the_others_alone() -> None:
    loads = Loads()
    loads.set("j", Load(host=None, percent=0, since=timedelta()))
    loads.set("j", Load(host="algo-2", percent=80, since=5 * MINUTE))
    assert percents(loads, "algo-1", 4, 5) == [0, 0]
    assert percents(loads, "algo-2", 4, 5) == [0, 80]


def test_the_later_of_two_loads_from_the_same_minute_counts() -> None:
    loads = Loads()
    loads.set("j", Load(host=None, percent=20, since=MINUTE))
    loads.set("j", Load(host=None, percent=30, since=timedelta()))
    loads.set("j", Load(host=None, percent=40, since=MINUTE))
    assert percents(loads, "algo-1", 0, 1) == [30, 40]


def on(instance_type: str, count: int) -> dict[str, object]:
    return {"InstanceType": instance_type, "InstanceCount": count, "VolumeSizeInGB": 1}


def test_the_percent_of_a_host_is_added_up_over_its_gpus():
    loads = Loads()
    loads.set("job", Load(host="algo-2", percent=10, since=timedelta()))
    job = walked(
        a_job(ResourceConfig=on("ml.p4d.24xlarge", 2)),
        Secondary.PENDING,
        Secondary.DOWNLOADING,
        Secondary.TRAINING,
    )
    samples = list(loads.samples(job, NOON + 4 * MINUTE))
    assert list(loads.samples(job, NOON + 3 * MINUTE)) == [], "no time has passed in Training yet"
    assert [one for one in samples if one.metric == "GPUUtilization"] == [
        Sample(metric="GPUUtilization", dimension=("Host", "job/algo-1"), value=760.0),
        Sample(metric="GPUUtilization", dimension=("Host", "job/algo-2"), value=80.0),
    ]
    assert {one.metric for one in samples} == {"GPUUtilization", "CPUUtilization", "MemoryUtilization"}


def test_the_minutes_of_a_load_begin_with_the_first_training():
    loads = Loads()
    loads.set("job", Load(host=None, percent=0, since=2 * MINUTE))
    job = walked(
        a_job(ResourceConfig=on("ml.g5.xlarge", 1)),
        Secondary.PENDING,
        Secondary.DOWNLOADING,
        Secondary.TRAINING,
    )
    values = [next(loads.samples(job, NOON + minute * MINUTE)).value for minute in (4, 5, 6)]
    assert values == [95.0, 95.0, 0.0]


def test_a_minute_is_as_busy_as_its_parts_together():
    loads = Loads()
    loads.set("job", Load(host=None, percent=0, since=MINUTE / 4))
    loads.set("job", Load(host=None, percent=40, since=MINUTE / 2))
    assert loads.mean_percent("job", "algo-1", timedelta(), MINUTE) == 95 / 4 + 40 / 2
    assert loads.mean_percent("job", "algo-1", MINUTE, 2 * MINUTE) == 40


def test_a_type_without_gpus_has_no_gpu_metric():
    job = walked(a_job(), Secondary.PENDING, Secondary.DOWNLOADING, Secondary.TRAINING)
    assert {one.metric for one in Loads().samples(job, NOON + 4 * MINUTE)} == {
        "CPUUtilization",
        "MemoryUtilization",
    }


def test_nothing_is_measured_before_and_after_training():
    job = walked(a_job(ResourceConfig=on("ml.g5.xlarge", 1)), Secondary.PENDING, Secondary.DOWNLOADING)
    later = NOON + 4 * MINUTE
    assert list(Loads().samples(job, later)) == []
    assert list(Loads().samples(walked(job, Secondary.TRAINING, Secondary.UPLOADING), later)) == []
