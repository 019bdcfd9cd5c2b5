"""What the replay makes of a trace, and of an attempt."""

import pytest
from trainmaster_client.simulate.histories.trace_draws import Klass, draw
from trainmaster_client.simulate.io.replaying import replay

from benchmarks.replay import made_up_account, synthetic
from benchmarks.replay.cells import World, run_of
from benchmarks.replay.deciders import DECIDERS
from benchmarks.replay.figures import capacities, figures, most_in_use
from benchmarks.replay.jobs import DAY_S, jobs_of
from benchmarks.replay.policy import policy_for
from benchmarks.replay.requested_times import Requests
from benchmarks.replay.rows import Row, history_of, instant, rows_of
from tests.unit.benchmarks.traces import job


def line(job_id: str = "p33686", **fields: str) -> dict[str, str]:
    given = {"job_id": job_id, "submit_s": "115", "gpus": "1", "duration_s": "78", "vc": "11cb48"}
    return given | fields


def test_class_and_checkpoints_are_drawn_from_a_hash_of_seed_and_name() -> None:
    assert [round(draw(1, kind, "p33686"), 6) for kind in "cki"] == [0.192383, 0.446357, 0.039419]
    (first,) = jobs_of([line()], seed=1)
    (second,) = jobs_of([line()], seed=2)
    assert (first.klass, first.checkpoint_every_s) == (Klass.NORMAL, 600)
    assert (second.klass, second.checkpoint_every_s) == (Klass.NORMAL, 1800)


def test_gpus_are_mapped_to_instances_of_three_pools() -> None:
    widths = ["1", "2", "4", "8", "12", "128"]
    jobs = jobs_of([line(f"j{width:>3}", gpus=width) for width in widths], seed=1)
    places = {one.job_id.strip("j "): (one.pool, one.instances) for one in jobs}
    assert places == {
        "1": ("g1", 1),
        "2": ("g1", 2),
        "4": ("g4", 1),
        "8": ("g8", 1),
        "12": ("g8", 2),
        "128": ("g8", 16),
    }


def test_run_times_are_cut_to_five_days() -> None:
    runs = {"short": "86399", "day": "86400", "endless": str(31 * DAY_S)}
    jobs = {
        job.job_id: job for job in jobs_of([line(name, duration_s=s) for name, s in runs.items()], seed=1)
    }
    assert {name: job.duration_s for name, job in jobs.items()} == {
        "short": 86399,
        "day": 86400,
        "endless": 432000,
    }
    assert all(job.duration_s < job.requested_s for job in jobs.values())


def test_with_a_day_for_all_every_job_requests_a_day_and_longer_ones_are_cut_to_it() -> None:
    lines = [line("short"), line("long", duration_s="90000"), line("told", requested_s="500")]
    jobs = jobs_of(lines, seed=1, requests=Requests.DAY)
    assert {job.job_id: (job.duration_s, job.requested_s) for job in jobs} == {
        "short": (78, DAY_S),
        "long": (DAY_S, DAY_S),
        "told": (78, DAY_S),
    }


def test_only_the_first_days_are_replayed_when_asked() -> None:
    lines = [line("early", submit_s="100"), line("late", submit_s=str(2 * DAY_S))]
    assert [one.job_id for one in jobs_of(lines, seed=1, days=2)] == ["early"]


def test_wide_widens_jobs_of_the_8_gpu_pool_alone() -> None:
    lines = [line(f"j{number}", gpus=gpus) for number in range(100) for gpus in ("1", "4", "8")]
    jobs = jobs_of(lines, seed=1, wide=True)
    widths = {pool: {one.instances for one in jobs if one.pool == pool} for pool in ("g1", "g4", "g8")}
    assert widths == {"g1": {1}, "g4": {1}, "g8": {1, 2, 4, 8}}


def test_capacity_is_mean_demand_over_load_and_holds_the_widest_job() -> None:
    jobs = [job("a", duration_s=9760), job("b", submit_s=10_000, instances=3, duration_s=3093)]
    # (10000 + 3 * 3333) / 10000 s: 2.0 instances on average. At load 0.5 that is 4, at load 1 the widest's 3.
    assert capacities(jobs, load=0.5) == {"g1": 4}
    assert capacities(jobs, load=0.49) == {"g1": 5}
    assert capacities(jobs, load=1.0) == {"g1": 3}


def test_a_job_of_the_trace_asks_for_what_the_model_gave_it() -> None:
    (first,) = history_of(
        [job("a", submit_s=10, duration_s=86_400, klass=Klass.HIGH, requested_s=5 * DAY_S)]
    ).jobs
    assert (first.name, first.team, first.submitted_at) == ("a", "vision", instant(10))
    assert (dict(first.instances), first.priority) == ({"ml.g5.xlarge": 1}, 200)
    assert (first.trains_for.days, first.max_runtime.days, first.saves_every) == (1, 5, None)


def test_rows_have_the_fields_of_the_events() -> None:
    policy = policy_for({"g1": 1}, shortest_first=False)
    found = replay(history_of([job("a", submit_s=10)]), policy, label="product")
    assert rows_of(found.attempts) == [Row("a", 0, "g1", 1, 10, 250, 1250, "completed", 0, False)]


def test_figures_come_from_the_rows() -> None:
    jobs = [
        job("high", klass=Klass.HIGH, duration_s=3600),
        job("low", klass=Klass.LOW, duration_s=7200, pool="g8", instances=2),
        job("last", submit_s=7200, duration_s=3600),
    ]
    rows = [
        Row("high", 0, "g1", 1, 0, 240, 3840, "completed", 0, False),
        Row("low", 0, "g8", 2, 0, 240, 3930, "preempted", 1800, False),
        Row("low", 1, "g8", 2, 4000, 4090, 9490, "completed", 0, True),
    ]
    found = figures(rows, jobs, {"g1": 1, "g8": 2}).as_json()
    # Training up to 7200 s that lasted: high 3600 s on 1 GPU, low 1800 s and 3110 s on 16; of 17 x 7200 s.
    assert found["goodput"] == round((3600 + 16 * (1800 + 3110)) / (17 * 7200), 4)
    assert found["weighted_delay_h"] == round((8 * 240 + 1 * 2290) / 9 / 3600, 4)
    assert found["weighted_delay_g8_h"] == round(2290 / 3600, 4)
    assert found["lost_gpu_h"] == 8.0  # half an hour on 16 GPUs
    assert found["waste_gpu_h"] == 8.4  # and 90 s of stopping
    assert found["startup_gpu_h"] == round((240 + 16 * (240 + 90)) / 3600, 4)
    assert (found["finished"], found["unfinished"], found["preemptions"]) == (2, 1, 1)
    assert (found["starts"], found["warm_starts"]) == (3, 1)


def test_what_ends_and_what_starts_at_one_instant_do_not_add_up() -> None:
    rows = [
        Row("a", 0, "g1", 3, 0, 240, 500, "completed", 0, False),
        Row("b", 0, "g1", 2, 500, 740, 900, "completed", 0, False),
        Row("c", 0, "g1", 2, 600, 840, 900, "completed", 0, False),
    ]
    assert most_in_use(rows) == {"g1": 4}


def test_the_made_up_trace_is_always_the_same() -> None:
    rows = synthetic.rows()
    assert rows == synthetic.rows()
    assert len(rows) == 5600
    assert rows[0] == {
        "job_id": "s00000",
        "submit_s": "108",
        "gpus": "1",
        "duration_s": "894",
        "vc": "team01",
    }


def test_the_made_up_account_is_always_the_same_and_its_users_repeat_themselves() -> None:
    rows = made_up_account.rows()
    assert rows == made_up_account.rows()
    assert len({row["job_id"] for row in rows}) == len(rows) == 4326
    projects: dict[str, set[str]] = {}
    for row in rows:
        projects.setdefault(row["job_id"].rpartition("-")[0], set()).add(f"{row['user']} {row['gpus']}")
    assert {len(found) for found in projects.values()} == {1}
    assert max(len(row) for row in rows) > min(len(row) for row in rows)
    assert made_up_account.bounds({"g1": 100, "g8": 5}).instances == {"ml.g5.xlarge": 97}


def test_a_job_that_fails_is_over_and_one_that_breaks_off_goes_on() -> None:
    asked = [job("fails", duration_s=900, end="failed"), job("breaks", duration_s=900, breaks_after_s=300)]
    for decider in DECIDERS:
        found = run_of(decider, World(jobs=asked, capacity={"g1": 2}), seed=1)
        ends = sorted((row.job_id, row.attempt, row.end) for row in found.rows)
        assert ends == [("breaks", 0, "failed"), ("breaks", 1, "completed"), ("fails", 0, "failed")]
        assert found.figures.finished == 2, decider.label
        assert found.figures.lost_gpu_h == pytest.approx((300 + 900) / 3600)  # nothing was saved
