"""By what jobs are alike."""

from dataclasses import replace
from datetime import timedelta

import pytest
from trainmaster.core.durations.traits import SLOTS, Level, Traits, base_name, digest_of, learned_key

JOB = Traits(
    team="vision",
    lane="ml.g5.xlarge=1",
    limit=timedelta(days=1),
    name="bert-1",
    image="img:1",
    submitter="ada",
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bert-2026-11-23-10-34-59-123", "bert"),
        ("bert-large-17", "bert-large"),
        ("bert-3fa9c1d", "bert"),
        ("bert-facade", "bert-facade"),
        ("resnet50-lr3-0004", "resnet0-lr0"),
        ("p33686", "p0"),
        ("2026-11-23", "0"),
    ],
)
def test_runs_of_one_program_have_one_base_name(name: str, expected: str) -> None:
    assert base_name(name) == expected


def test_the_most_specific_comes_first_and_what_is_not_known_is_left_out() -> None:
    levels = [Level(key[0]) for key in replace(JOB, hyperparameters="d").keys]
    assert levels == list(Level)
    assert [key[0] for key in replace(JOB, image=None, submitter=None).keys] == ["n", "t", "e", "a"]


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        pytest.param({"name": "bert-2"}, "onsitea", id="its next run: everything"),
        pytest.param({"name": "gpt-1"}, "sitea", id="another program of the image"),
        pytest.param({"name": "gpt-1", "image": "img:2"}, "stea", id="of the same submitter alone"),
        pytest.param({"submitter": "bob"}, "nitea", id="another submitter's run of the program"),
        pytest.param({"team": "nlp"}, "ea", id="another team's: the shape"),
        pytest.param({"lane": "ml.g5.xlarge=2"}, "", id="another shape: nothing"),
        pytest.param({"limit": timedelta(hours=1)}, "osa", id="another requested time: what asks for none"),
    ],
)
def test_what_two_jobs_have_in_common(other: dict[str, object], shared: str) -> None:
    one, two = (
        {learned_key(job.team, key) for key in job.keys}
        for job in (JOB, replace(JOB, **other))  # type: ignore[arg-type]
    )
    assert sorted(key[0] for _, key in one & two) == sorted(shared)


def test_a_team_has_no_more_histograms_than_slots_on_each_level() -> None:
    many = {replace(JOB, name=f"job{'abcdefghij'[n % 10]}{'z' * (n // 10)}").keys[0] for n in range(600)}
    assert len(many) <= SLOTS
    assert all(int(key[1:], 16) < SLOTS for key in many)


def test_what_an_sdk_writes_into_hyperparameters_tells_no_runs_apart() -> None:
    run = {"lr": "0.1", "sagemaker_job_name": '"a-1"', "sagemaker_submit_directory": '"s3://b/a-1"'}
    again = run | {"sagemaker_job_name": '"a-2"', "sagemaker_submit_directory": '"s3://b/a-2"'}
    assert digest_of(run) == digest_of(again)
    assert digest_of(run) != digest_of(run | {"lr": "0.2"})


@pytest.mark.parametrize(
    ("other", "submitters"),
    [
        pytest.param("role/botocore-session-1764090000", 1, id="times"),
        pytest.param("role/other-session-1764086400", 2, id="names"),
        pytest.param("role/ada-2", 2, id="a name that ends with a number"),
    ],
)
def test_sessions_that_differ_by_their_time_are_one_submitter(other: str, submitters: int) -> None:
    keys = {
        key
        for submitter in ("role/botocore-session-1764086400", other)
        for key in replace(JOB, submitter=submitter).keys
        if key.startswith(Level.SUBMITTER)
    }
    assert len(keys) == submitters
