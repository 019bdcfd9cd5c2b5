from itertools import pairwise

import pytest

from benchmarks.training.bench.cases import (
    Case,
    Kind,
    Record,
    State,
    batch_for,
    begun,
    largest,
    next_batch,
    out_of_time,
    unsettled,
)
from benchmarks.training.bench.suites import (
    GLIBC_KEEPS_MEMORY,
    LEVERS,
    MLP_ROWS,
    SUITES,
    lever_rows,
    suite_of,
)

CASE = Case(id="eager", kind=Kind.STEPS, needs=40, limit=90, batch_of="batch")


@pytest.mark.parametrize(
    ("fits", "first", "most", "asked", "found"),
    [
        pytest.param(40, 8, 64, [8, 16, 32, 64, 48, 40], 40, id="between"),
        pytest.param(64, 8, 64, [8, 16, 32, 64], 64, id="all that is asked for fits"),
        pytest.param(100, 8, 50, [8, 16, 32, 50], 50, id="the largest is not a power of two"),
        pytest.param(3, 8, 64, [8, 4, 2, 3], 3, id="less than the first"),
        pytest.param(0, 8, 64, [8, 4, 2, 1], None, id="not even one"),
        pytest.param(8, 8, 64, [8, 16, 12, 10, 9], 8, id="the first alone"),
    ],
)
def test_the_largest_batch_is_found_by_halving(
    fits: int, first: int, most: int, asked: list[int], found: int | None
) -> None:
    tried: dict[int, State] = {}
    while (batch := next_batch(tried, first=first, most=most)) is not None:
        tried[batch] = State.OK if batch <= fits else State.OUT_OF_MEMORY
    assert (list(tried), largest(tried)) == (asked, found)


@pytest.mark.parametrize("state", [State.CRASHED, State.TIME_LIMIT, State.OUT_OF_MEMORY, State.COMPILE_ERROR])
def test_whatever_does_not_end_well_does_not_fit(state: State) -> None:
    assert next_batch({8: State.OK, 16: state}, first=8, most=64) == 12


def test_what_is_settled_is_not_run_again() -> None:
    cases = [Case(id=state, kind=Kind.STEPS, needs=1, limit=1) for state in State]
    records = {str(state): Record(id=state, state=state) for state in State}
    assert [case.id for case in unsettled(cases, records)] == ["no-time-left", "running"]
    assert unsettled(cases, {}) == cases


def test_a_case_begins_only_if_enough_is_left_for_it() -> None:
    assert out_of_time(CASE, 40, None) is None
    late = out_of_time(CASE, 39, None)
    assert late is not None
    assert (late.state, late.reason) == (
        State.NO_TIME,
        "needs 40 s of 39 s that are left: continue with --resume",
    )


def test_a_case_that_ends_the_suite_twice_is_given_up() -> None:
    first = begun(CASE, None)
    second = begun(CASE, first)
    third = begun(CASE, second)
    assert [one.starts for one in (first, second)] == [1, 2]
    assert (third.state, third.reason) == (State.CRASHED, "the suite was ended 2 times while it ran")


def test_time_that_ran_out_is_not_held_against_a_case() -> None:
    late = out_of_time(CASE, 0, begun(CASE, begun(CASE, None)))
    assert begun(CASE, late).starts == 1


@pytest.mark.parametrize(
    ("records", "batch"),
    [
        ({}, None),
        ({"batch": Record(id="batch", state=State.OK, result={"batch": 24})}, 24),
        ({"batch": Record(id="batch", state=State.OUT_OF_MEMORY, result={"batch": None})}, None),
    ],
)
def test_a_case_takes_the_batch_that_was_found(records: dict[str, Record], batch: int | None) -> None:
    assert batch_for(CASE, records) == batch


def test_a_task_has_the_batch_that_was_found_instead_of_its_own() -> None:
    case = Case(id="e", kind=Kind.STEPS, needs=1, limit=1, options={"batch-size": "8", "lr": "1"})
    assert case.task(24)["options"] == {"batch-size": "24", "lr": "1"}
    assert case.task()["options"] == {"batch-size": "8", "lr": "1"}


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_fits_into_ten_minutes_if_nothing_goes_wrong(name: str) -> None:
    cases = suite_of(name, host_threads=2)
    assert sum(case.needs for case in cases) <= 580
    assert len({case.id for case in cases}) == len(cases)
    assert all(case.needs <= case.limit for case in cases)
    searches = {case.id for case in cases if case.kind is Kind.BATCH}
    assert {case.batch_of for case in cases} <= {None, *searches}


def test_each_lever_comes_on_top_of_those_before() -> None:
    cases = [case for case in suite_of("cpu-levers", host_threads=2) if case.id in lever_rows("vit-tiny")]
    assert [case.id for case in cases] == list(lever_rows("vit-tiny"))
    asked = [{**case.options, **case.env} for case in cases]
    for (before, after), (lever, *_) in zip(pairwise(asked), LEVERS[1:], strict=True):
        changed = {name for name in after if before.get(name) != after[name]}
        assert changed == {
            "batch": {"batch-size"},
            "precision": {"precision"},
            "compile": {"modes"},
            "allocator": set(GLIBC_KEEPS_MEMORY),
            "threads": {"OMP_NUM_THREADS"},
        }.get(lever), lever
        assert before.keys() <= after.keys()


def test_a_record_is_read_as_it_was_written() -> None:
    record = Record(id="a", state=State.TIME_LIMIT, seconds=1.5, reason="r", result={"x": 1}, starts=2)
    assert Record.of_json(record.as_json()) == record


def test_the_articles_matrices_are_the_same_cases_on_a_gpu_and_in_its_dry_run() -> None:
    large, small = (
        {case.id: case.options for case in suite_of(name, host_threads=2) if case.kind is Kind.MLP}
        for name in ("h200", "cpu")
    )
    assert list(large) == list(small) == list(MLP_ROWS)
    sizes = {"layers", "width", "batch-size", "lr"}
    for row, options in large.items():
        assert (options["layers"], options["width"]) == ("8", "20480")
        assert {name for name in options if options[name] != small[row][name]} <= sizes


def test_each_precision_of_vit_huge_takes_the_largest_batch_of_its_own() -> None:
    cases = suite_of("vit-huge", host_threads=2)
    steps = {case.id: case for case in cases if case.kind is Kind.STEPS}
    assert {name: case.batch_of for name, case in steps.items()} == {
        "bf16": "bf16-batch",
        "float8": "float8-batch",
    }
    assert {case.options["preset"] for case in cases} == {"vit-huge"}
    assert {case.options["modes"] for case in cases} == {"compiled"}
    dry = suite_of("cpu-vit", host_threads=2)
    assert [(case.id, case.kind) for case in dry] == [(case.id, case.kind) for case in cases]
