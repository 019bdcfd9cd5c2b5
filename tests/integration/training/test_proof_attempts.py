"""Starting, watching and killing, with a stand-in that trains nothing."""

import subprocess
import sys
from pathlib import Path
from threading import Event

from benchmarks.training.proof.jobs import Attempt, Job
from benchmarks.training.proof.kill_schedule import Schedule
from benchmarks.training.proof.proving import Proof, runs_of

_COUNTING = Path(__file__).parent / "programs/counting.py"


def _job(place: Path, *, kill_at: str, worlds: str, fails: str = "false") -> Job:
    schedule = Schedule.read(steps=40, kill_at=kill_at, worlds=worlds)
    return Job(place=place, schedule=schedule, hyperparameters={"fails": fails}, program=_COUNTING)


def _is_running(pid: int) -> bool:
    """A zombie is not: it only waits for whoever inherited it."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_each_attempt_is_ended_as_the_schedule_says_and_the_next_goes_on(tmp_path: Path) -> None:
    told: list[Attempt] = []
    job = _job(tmp_path, kill_at="3:TERM,12:KILL,20:INT", worlds="2,1,2,1")
    attempts = job.attempts(told.append)
    assert told == attempts
    assert [one.exit_code for one in attempts] == [143, -9, 143, 0]
    assert [one.world for one in attempts] == [2, 1, 2, 1]
    assert [one.error for one in attempts] == [""] * 4
    assert attempts[0].sent_at == 3
    stopped, killed = attempts[0].losses[-1][0], attempts[1].losses[-1][0]
    assert stopped >= 3
    assert attempts[1].losses[0][0] == stopped + 1
    assert killed >= 12
    assert attempts[2].losses[0][0] == killed // 5 * 5 + 1, "only every fifth step was kept"
    assert attempts[3].losses[-1] == (40, 5 - 40 / 3)


def test_nothing_of_a_killed_attempt_is_left(tmp_path: Path) -> None:
    _job(tmp_path, kill_at="3:KILL", worlds="3,1").attempts(lambda _: None)
    attempts = [one.read_text().split() for one in (tmp_path / "checkpoints").glob("pids-*")]
    assert sorted(len(one) for one in attempts) == [1, 3]
    pids = [int(pid) for attempt in attempts for pid in attempt]
    assert not [pid for pid in pids if _is_running(pid)]


def test_an_attempt_that_fails_is_the_last_and_says_why(tmp_path: Path) -> None:
    attempts = _job(tmp_path, kill_at="3:TERM", worlds="1,1", fails="true").attempts(lambda _: None)
    assert [one.exit_code for one in attempts] == [1]
    assert "no such data" in attempts[0].error


def test_after_a_run_that_fails_nothing_more_is_run_and_the_report_is_not_ok(tmp_path: Path) -> None:
    program = tmp_path / "broken.py"
    program.write_text("raise SystemExit('it is broken')")
    schedule = Schedule.read(steps=4, kill_at="2:TERM", worlds="1,1")
    report = Proof(schedule=schedule, seed=0, checkpoint_every=5, program=program).report(runs_of(schedule))
    assert not report.ok
    (run,) = report.facts["runs"]
    assert (run["id"], run["exit_codes"], run["final_hashes"]) == ("fp32-uninterrupted", [1], None)
    assert "it is broken" in run["attempts"][0]["error"]
    assert {one.id for one in report.checks if not one.ok} == {
        "runs",
        "fp32-uninterrupted-exit-codes",
        "fp32-uninterrupted-steps-missing",
    }


def test_a_program_that_says_nothing_more_is_killed_and_that_is_told(tmp_path: Path) -> None:
    program = tmp_path / "silent.py"
    program.write_text("import threading\nprint('here', flush=True)\nthreading.Event().wait()\n")
    schedule = Schedule.read(steps=4, kill_at="", worlds="1")
    job = Job(
        place=tmp_path / "job",
        schedule=schedule,
        hyperparameters={},
        program=program,
        silent_seconds=5.0,  # the interpreter starts within it
    )
    (attempt,) = job.attempts(lambda _: None)
    assert attempt.exit_code == -9
    assert attempt.said[-1:] == ("here",)
    assert attempt.error == "it printed nothing for 5 s"


def test_a_proof_that_is_ended_leaves_nothing_running(tmp_path: Path) -> None:
    program = tmp_path / "waiting.py"
    program.write_text(
        "import os, pathlib, threading\n"
        f"pathlib.Path('{tmp_path}/pid').write_text(str(os.getpid()))\n"
        "print('here', flush=True)\n"
        "threading.Event().wait()\n"
    )
    command = [
        sys.executable,
        "-m",
        "benchmarks.training.proof",
        "--worlds",
        "1",
        "--kill-at",
        "",
        "--program",
        str(program),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as proof:
        assert proof.stdout is not None
        proof.stdout.readline()
        pid = _number_in(tmp_path / "pid")
        proof.terminate()
        assert proof.wait(timeout=60) == 143
    assert not _is_running(pid)


def _number_in(path: Path) -> int:
    """Once it is written."""
    for _ in range(600):
        if path.exists() and (text := path.read_text()):
            return int(text)
        Event().wait(0.1)
    raise AssertionError(f"nobody wrote {path}")
