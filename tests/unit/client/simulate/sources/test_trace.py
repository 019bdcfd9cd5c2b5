"""A trace file: its columns, every value that is not valid, and what it becomes on a policy's pools."""

import gzip
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from trainmaster.core.policy import Policy, parse_policy
from trainmaster_client.errors import InvalidArgumentError, MalformedHistoryError
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.histories.trace_history import BEGINS
from trainmaster_client.simulate.sources import history_from_trace

FIVE = "job_id,submit_s,gpus,duration_s,vc"


def policy(**capacity: Any) -> Policy:
    pools = [
        {"name": "p5", "capacity": {"ml.p5.48xlarge": 2}},
        {"name": "g5", "capacity": {"ml.g5.12xlarge": 4}, "spot_capacity": {"ml.g5.12xlarge": 8}},
    ]
    return parse_policy({"pools": pools} | capacity)


def written(folder: Path, *lines: str, ends: str = "\n") -> Path:
    path = folder / "trace.csv"
    path.write_text("".join(line + ends for line in lines), encoding="utf-8", newline="")
    return path


def history(folder: Path, *lines: str) -> History:
    return history_from_trace(written(folder, *lines), policy(), seed=1)


def problems(path: Path) -> list[str]:
    with pytest.raises(MalformedHistoryError) as error:
        history_from_trace(path, policy(), seed=1)
    assert str(path) in str(error.value)
    return [str(problem) for problem in error.value.problems]


def test_five_columns_are_enough(tmp_path: Path) -> None:
    found = history(tmp_path, FIVE, "p1,60,1,78,vision", "p0,0,8,90000.5,language")
    later, first = found.jobs[1], found.jobs[0]
    assert (first.name, first.submitted_at, first.trains_for) == ("p0", BEGINS, timedelta(seconds=90_000.5))
    assert (first.pool, first.instances, first.max_runtime) == (
        "p5",
        {"ml.p5.48xlarge": 1},
        timedelta(days=5),
    )
    assert (later.submitted_at, later.team, later.submitted_by) == (
        BEGINS + timedelta(minutes=1),
        "vision",
        "vision",
    )
    assert (later.pool, later.instances) == ("g5", {"ml.g5.12xlarge": 1})
    assert later.end == "completed"
    assert not found.is_recorded
    assert any("priority of all 2 jobs is drawn with seed 1" in one for one in found.not_known)
    assert any("How all 2 jobs ended is not known" in one for one in found.not_known)


def test_further_columns_are_taken_in_any_order(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        "vc,name,user,priority,job_id,submit_s,gpus,duration_s,instance_type,requested_s,checkpoint_every_s,end",
        "vision,bert,ada,7,17,0,4,3600,ml.p5.48xlarge,7200,0,failed",
        "vision,,,,18,1,4,3600,,,900,",
    )
    one, other = found.jobs
    assert (one.name, one.submitted_by, one.priority, one.end) == ("bert-17", "ada", 7, "failed")
    assert (one.pool, one.instances, one.saves_every) == (None, {"ml.p5.48xlarge": 1}, None)
    assert one.max_runtime == timedelta(hours=2)
    assert (other.name, other.instances) == ("18", {"ml.g5.12xlarge": 1})
    assert (other.saves_every, other.max_runtime) == (timedelta(minutes=15), timedelta(days=1))
    assert any("The priority of 1 of 2 jobs" in sentence for sentence in found.not_known)


def test_what_was_drawn_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    path = written(tmp_path, FIVE, *(f"j{number},{number},1,60,a" for number in range(200)))
    first, again, other = (history_from_trace(path, policy(), seed=seed).jobs for seed in (1, 1, 2))
    assert first == again != other
    assert {job.priority for job in first} == {0, 100, 200}
    assert {job.saves_every for job in first} == {None, *(timedelta(minutes=each) for each in (10, 30, 60))}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            "a,-1,1,5,v",
            "line 2, submit_s: '-1' is not a valid second of submission; use a number, 0 or more",
            id="negative",
        ),
        pytest.param(
            "a,0,one,5,v",
            "line 2, gpus: 'one' is not a valid number of GPUs; use a number, 1 or more",
            id="word",
        ),
        pytest.param("a,0,,5,v", "line 2, gpus: is empty; write a value, or leave the line out", id="empty"),
        pytest.param(
            "a,0,1,nan,v",
            "line 2, duration_s: 'nan' is not a valid number of seconds; use a number, 0 or more",
            id="nan",
        ),
        pytest.param(
            "a,0,1,inf,v",
            "line 2, duration_s: 'inf' is not a valid number of seconds; use a number, 0 or more",
            id="infinite",
        ),
        pytest.param(
            "a,0,1,1e300,v",
            "line 2, duration_s: '1e300' is not a valid number of seconds; use a number, at most 3.1536e+08",
            id="huge",
        ),
        pytest.param(
            "a,0,1e9,5,v",
            "line 2, gpus: '1e9' is not a valid number of GPUs; use a number, at most 100000",
            id="too many",
        ),
        pytest.param(
            "a,0,1_0,5,v",
            "line 2, gpus: '1_0' is not a valid number of GPUs; use a number, 1 or more",
            id="underscore",
        ),
        pytest.param(
            "a,0,1.5,5,v",
            "line 2, gpus: 1.5 is not a valid number of GPUs; use a whole number",
            id="fraction",
        ),
        pytest.param(
            "a,0,1,0,v", "line 2, duration_s: is not more than 0; leave out jobs that never ran", id="no time"
        ),
        pytest.param(
            "a,0,1,5",
            "line 2: has 4 values, there are 5 columns; write one value for each column",
            id="short",
        ),
        pytest.param(
            "a,0,1,5,v,w",
            "line 2: has 6 values, there are 5 columns; write one value for each column",
            id="long",
        ),
    ],
)
def test_each_wrong_value_is_named_with_its_line_and_column(
    tmp_path: Path, values: str, expected: str
) -> None:
    assert problems(written(tmp_path, FIVE, values)) == [expected]


def test_all_mistakes_are_named_at_once_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, FIVE, "a,0,1,5,v", "a,0,1,5,v", *(f"x{number},0,0,5,v" for number in range(30)))
    found = problems(path)
    assert found[0] == "line 3, job_id: 'a' is on line 2 already; give each job an id of its own"
    assert len(found) == 20
    with pytest.raises(MalformedHistoryError, match="and 11 more"):
        history_from_trace(path, policy(), seed=1)


def test_other_columns_are_named_with_what_to_rename(tmp_path: Path) -> None:
    columns = "JobID, submit_time, num_gpus, duration, team"
    needed = "job_id, submit_s, gpus, duration_s, vc"
    assert problems(written(tmp_path, "JobID,submit_time,num_gpus,duration,team", "1,0,1,5,v")) == [
        f"line 1: missing columns: {needed}; found: {columns}; a trace needs {needed}",
        "line 1, JobID: looks like job_id; rename it to job_id",
        "line 1, submit_time: looks like submit_s; rename it to submit_s",
        "line 1, num_gpus: looks like gpus; rename it to gpus",
        "line 1, duration: looks like duration_s; rename it to duration_s",
        "line 1, team: looks like vc; rename it to vc",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", "the file is empty", id="empty"),
        pytest.param("\n", "the file is empty", id="blank"),
        pytest.param(FIVE + "\n", "has a line of columns and no jobs", id="header only"),
        pytest.param(FIVE.replace(",", ";") + "\na;0;1;5;v\n", "separated by semicolons", id="semicolons"),
        pytest.param(FIVE.replace(",", "\t") + "\na\t0\t1\t5\tv\n", "separated by tabs", id="tabs"),
        pytest.param('{"name": "a"}\n', "this is JSON", id="json"),
        pytest.param(FIVE + ",vc\na,0,1,5,v,v\n", "there twice: vc", id="column twice"),
        pytest.param(FIVE + '\n"a"b,0,1,5,v\n', "line 2: is not CSV", id="quotes"),
    ],
)
def test_files_that_are_no_trace_are_refused_with_the_reason(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text, encoding="utf-8")
    assert expected in problems(path)[0]


def test_byte_order_marks_carriage_returns_and_gzip_are_read(tmp_path: Path) -> None:
    plain = history(tmp_path, FIVE, "a,0,1,5,v").jobs
    assert (
        history_from_trace(
            written(tmp_path, "\ufeff" + FIVE, "a,0,1,5,v", "", ends="\r\n"), policy(), seed=1
        ).jobs
        == plain
    )
    packed = tmp_path / "trace.csv.gz"
    packed.write_bytes(gzip.compress(f"{FIVE}\na,0,1,5,v\n".encode()))
    assert history_from_trace(packed, policy(), seed=1).jobs == plain


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(b"job_id" * 1000)[:30])
    latin = tmp_path / "latin.csv"
    latin.write_bytes(FIVE.encode() + b"\n\xe9,0,1,5,v\n")
    for path, why in (
        (tmp_path / "none.csv", "No such file"),
        (cut, "cut off or damaged"),
        (latin, "not text in UTF-8"),
    ):
        with pytest.raises(InvalidArgumentError, match=why):
            history_from_trace(path, policy(), seed=1)


def test_columns_without_a_use_are_named_and_ignored(tmp_path: Path) -> None:
    found = history(tmp_path, FIVE + ",colour,mood", "a,0,1,5,v,red,good")
    assert "Columns that a replay does not use were ignored: colour, mood." in found.not_known


def test_what_no_pool_has_room_for_is_counted_with_the_reason(tmp_path: Path) -> None:
    found = history(tmp_path, FIVE, "small,0,1,5,v", "wide,0,64,5,v")
    assert [job.instances for job in found.jobs] == [{"ml.g5.12xlarge": 1}, {"ml.p5.48xlarge": 8}]
    assert (
        "1 job cannot start with the policy's capacity: asks for 64 GPUs, 8 instances of ml.p5.48xlarge; "
        "pool p5 has 2 (on-demand) (1)."
    ) in found.not_known


def test_a_policy_without_gpus_is_refused(tmp_path: Path) -> None:
    cpus = parse_policy({"pools": [{"name": "cpu", "capacity": {"ml.m5.xlarge": 4}}]})
    with pytest.raises(InvalidArgumentError, match="no pool with GPUs"):
        history_from_trace(written(tmp_path, FIVE, "a,0,1,5,v"), cpus, seed=1)


def test_run_times_over_a_limit_are_cut_and_counted(tmp_path: Path) -> None:
    found = history(tmp_path, FIVE + ",requested_s", f"long,0,1,{29 * 86400},v,", "over,1,1,7200,v,3600")
    assert [(job.trains_for, job.max_runtime, job.end) for job in found.jobs] == [
        (timedelta(days=28), timedelta(days=28), "stopped"),
        (timedelta(hours=1), timedelta(hours=1), "stopped"),
    ]
    assert "1 job ran for longer than 28 days, SageMaker's limit: cut to it." in found.not_known
    assert "1 job ran for longer than requested: stopped at that." in found.not_known


def test_teams_that_the_policy_does_not_have_are_named(tmp_path: Path) -> None:
    teams = policy(teams=[{"name": "vision", "roles": "any"}])
    found = history_from_trace(written(tmp_path, FIVE, "a,0,1,5,vision", "b,0,1,5,vc1"), teams, seed=1)
    assert any(one.startswith("Teams that are not in the policy: vc1.") for one in found.not_known)


def test_openb_is_known_by_its_columns_and_says_what_it_loses(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        "task_id,submit_s,start_s,end_s,gpus,gpu_milli,gpu_spec,qos,phase",
        "t0,0,10,110,1,460,,LS,Running",
        "t1,5,20,80,8,1000,V100M32,BE,Failed",
        "t2,6,,90,1,1000,,LS,Pending",
    )
    first, second = found.jobs
    assert (first.trains_for, first.priority, first.end, first.team) == (
        timedelta(seconds=100),
        200,
        "completed",
        "default",
    )
    assert (second.trains_for, second.priority, second.end) == (timedelta(seconds=60), 0, "failed")
    said = " ".join(found.not_known)
    for part in (
        "1 task never placed",
        "1 task that had a share",
        "1 task that could run",
        "1 task still running",
    ):
        assert part in said


def test_a_mistake_in_openb_has_its_line_and_column(tmp_path: Path) -> None:
    header = "task_id,submit_s,start_s,end_s,gpus,gpu_milli,gpu_spec,qos,phase"
    assert problems(written(tmp_path, header, "t0,0,10,5,1,460,,XX,Running")) == [
        "line 2, qos: 'XX' is not known; use one of LS, Guaranteed, Burstable, BE",
        "line 2, end_s: is not after start_s; write the second at which it ended",
    ]


def test_shorter_names_of_the_columns_are_known(tmp_path: Path) -> None:
    full = history(tmp_path, FIVE + ",user,name", "a,5,4,60,v,ada,bert").jobs
    short = history(tmp_path, "id,submitted,seconds,GPUs,group,user,program", "a,5,60,4,v,ada,bert").jobs
    assert short == full
    assert (short[0].name, short[0].submitted_by) == ("bert-a", "ada")


def swf(
    job: str,
    submit: str,
    run: str,
    *,
    allocated: str = "1",
    asked: str = "-1",
    requested: str = "-1",
    status: str = "1",
    user: str = "-1",
    group: str = "-1",
    program: str = "-1",
) -> str:
    head = f"{job} {submit} 7 {run} {allocated} -1 -1 {asked} {requested} -1"
    return f"{head} {status} {user} {group} {program} -1 -1 -1 -1"


def test_a_workload_is_known_by_its_content(tmp_path: Path) -> None:
    found = history(
        tmp_path,
        "; Version: 2.2",
        ";",
        "",
        swf("1", "0", "3600", allocated="4", requested="7200", user="3", group="2", program="9"),
        swf("2", "60", "90", allocated="-1", asked="8", status="0"),
        swf("3", "70", "-1", status="5"),
        swf("4", "80", "90", allocated="-1"),
        swf("1", "0", "1800", status="2"),
    )
    first, second = found.jobs
    assert (first.name, first.team, first.submitted_by) == ("program9-1", "group2", "user3")
    assert (first.instances, first.end) == ({"ml.g5.12xlarge": 1}, "completed")
    assert (first.trains_for, first.max_runtime) == (timedelta(hours=1), timedelta(hours=2))
    assert (second.name, second.team, second.end) == ("2", "default", "failed")
    assert (second.instances, second.max_runtime) == ({"ml.p5.48xlarge": 1}, timedelta(days=1))
    said = " ".join(found.not_known)
    assert "its processors are taken as GPUs" in said
    assert "2 jobs never ran, or with an unknown size: left out." in said


def test_a_workload_without_comments_is_known_too(tmp_path: Path) -> None:
    assert [job.name for job in history(tmp_path, swf("1", "0", "60")).jobs] == ["1"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["; head", "1 0 7 60 1"],
            "line 2: has 5 values, the Standard Workload Format has 18; "
            "write all columns, -1 where one is unknown",
            id="too few columns",
        ),
        pytest.param(
            ["; head", swf("1", "-1", "60")],
            "line 2, submit_s: '-1' is not a valid second of submission; use a number, 0 or more",
            id="unknown submission",
        ),
        pytest.param(
            ["; head", swf("1", "0", "soon")],
            "line 2, duration_s: 'soon' is not a valid number of seconds; use a number, 0 or more",
            id="word",
        ),
        pytest.param(
            ["; head", swf("1", "0", "60", status="9")],
            "line 2, end: '9' is not a status; use one of -1, 0, 1, 2, 3, 4, 5 in column 11",
            id="status",
        ),
        pytest.param(
            ["; head", swf("1", "0", "60"), swf("1", "5", "60")],
            "line 3, job_id: '1' is on line 2 already; give each job an id of its own",
            id="twice",
        ),
        pytest.param(["; head"], "line 1: has comments and no jobs; add a line for each job", id="no jobs"),
    ],
)
def test_a_wrong_line_of_a_workload_is_named(tmp_path: Path, lines: list[str], expected: str) -> None:
    assert problems(written(tmp_path, *lines)) == [expected]


@pytest.mark.parametrize(
    ("mode", "limits"),
    [("enforce", [2, 5]), ("audit", [5, 5])],
)
def test_a_job_asks_for_what_the_rule_allows_where_that_is_enough(
    tmp_path: Path, mode: str, limits: list[int]
) -> None:
    rules = {"max_runtime": {"mode": mode, "value": "2d"}}
    lines = ["p0,0,8,90000,language", "p1,0,8,180000,language"]  # 25 and 50 hours
    found = history_from_trace(written(tmp_path, FIVE, *lines), policy(rules=rules), seed=1)
    assert [job.max_runtime for job in found.jobs] == [timedelta(days=days) for days in limits]
