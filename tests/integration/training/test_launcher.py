"""The launcher with real processes: ends in order, failures, signals at any moment."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.training.launches import Ended, Host, ended, lines_until

BLOCK_END = "SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP"
TWO = {"NPROC_PER_NODE": "2"}
HEARS = """
import os, signal, sys, time
heard = []
signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
print("ready", flush=True)
while not heard:
    time.sleep(0.01)
time.sleep(0.3)  # a second signal would come in this time
print("heard", len(heard), flush=True)
sys.exit(int(os.environ["ENDS_WITH"]))
"""
SLEEPS = "import time; print('ready', flush=True); time.sleep(60)"
IGNORES = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}; print('slept')"


def by_rank(first: str, second: str) -> str:
    """Another script for each of two ranks."""
    return f"import os\nexec({[first, second]!r}[int(os.environ['RANK'])])"


def test_all_ranks_done_is_completed(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "import os, sys; print(os.environ['RANK'], sys.argv[1:])", **TWO)
    host.tell("hyperparameters", {"lr": "1e-3", "name": '"a b"'})
    done = host.run()
    assert done.code == 0, done.errors
    assert {"0 ['--lr', '1e-3', '--name', 'a b']", "1 ['--lr', '1e-3', '--name', 'a b']"} <= set(done.lines)
    assert not (tmp_path / "output/failure").exists()
    assert host.status["state"] == "completed"


def test_a_request_for_traces_ends_neither_the_launcher_nor_a_rank_that_has_no_answer(tmp_path: Path) -> None:
    done = Host.with_script(
        tmp_path, "import time; print('ready', flush=True); time.sleep(0.3)", **TWO
    ).stop_at("ready", times=2, number=signal.SIGUSR2)
    assert done.code == 0, done.errors


def test_the_first_rank_that_fails_ends_the_others_and_its_exception_is_the_reason(tmp_path: Path) -> None:
    raises = (
        "try:\n    [][0]\nexcept IndexError as error:\n    raise RuntimeError('no data\\nmore') from error"
    )
    host = Host.with_script(tmp_path, by_rank(SLEEPS, raises), **TWO)
    done = host.run()
    assert done.code == 1
    assert host.failure == "rank 1 exited with 1: RuntimeError: no data"
    assert "IndexError" in done.errors
    assert (host.status["state"], host.status["reason"]) == ("failed", host.failure)


def test_a_rank_that_does_not_end_with_the_one_that_failed_is_killed(tmp_path: Path) -> None:
    fails = "import time; time.sleep(0.5); raise SystemExit('no data')"  # when the other ignores the signal
    host = Host.with_script(tmp_path, by_rank(IGNORES, fails), LAUNCH_STOP_SECONDS="1", **TWO)
    done = host.run()
    assert done.code == 1
    assert "slept" not in done.lines
    assert host.failure == "rank 1 exited with 1: no data"


def test_a_failure_that_the_program_told_itself_is_left_as_it_is(tmp_path: Path) -> None:
    tells = "import os; open(os.environ['SM_OUTPUT_DIR'] + '/failure', 'w').write('disk full'); 1 / 0"
    host = Host.with_script(tmp_path, tells)
    assert host.run().code == 1
    assert host.failure == host.status["reason"] == "disk full"


def test_a_killed_rank_is_the_cause_whatever_the_others_make_of_it(tmp_path: Path) -> None:
    follows = (
        f"open(os.environ['SM_OUTPUT_DIR'] + '/failure', 'w').write('connection closed by peer'); {SLEEPS}"
    )
    dies = (
        "import time\n"
        "while not os.path.exists(os.environ['SM_OUTPUT_DIR'] + '/failure'):\n"
        "    time.sleep(0.01)\n"
        "os.kill(os.getpid(), 9)"
    )
    host = Host.with_script(tmp_path, by_rank(follows, dies), **TWO)
    assert host.run().code == 1
    assert host.failure == (
        "rank 1 was ended by SIGKILL: most likely the host ran out of memory; then: connection closed by peer"
    )


def test_a_crash_says_which_signal(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert host.run().code == 1
    assert host.failure == "rank 0 was ended by signal 11 (Segmentation fault)"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_every_rank_once_as_sigterm(tmp_path: Path, number: signal.Signals) -> None:
    host = Host.with_script(tmp_path, HEARS, ENDS_WITH="143", **TWO)
    done = host.stop_at("ready", times=2, number=number)
    assert done.code == 143, done.errors
    assert done.lines.count("heard 1") == 2
    assert host.status["state"] == "preempted"
    assert not (tmp_path / "output/failure").exists()


def test_ranks_are_asked_to_stop_though_no_signal_comes_when_their_window_closes(tmp_path: Path) -> None:
    """A slow machine may ask them before they can hear; they are preempted then, too."""
    closes = {"LAUNCH_WINDOW_SECONDS": "3597", BLOCK_END: str(round((time.time() + 5400) * 1000))}
    done = Host.with_script(tmp_path, HEARS, ENDS_WITH="143", **closes).run()
    assert done.code == 143, done.errors
    reason = json.loads((tmp_path / "checkpoints/status.json").read_text())["reason"]
    assert reason.startswith("the window of the training plan closes")
    assert not (tmp_path / "output/failure").exists()


def test_a_window_whose_end_makes_no_sense_is_named_and_the_job_trains(tmp_path: Path) -> None:
    done = Host.with_script(tmp_path, "print('trains')", **{BLOCK_END: "soon"}).run()
    assert (done.code, done.lines.count("trains")) == (0, 1)
    assert f"launcher: {BLOCK_END} is ignored" in "\n".join(done.lines)


def test_two_signals_are_handed_on_as_one(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, HEARS, ENDS_WITH="143")
    process = host.start()
    lines_until(process, "ready")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert "heard 1" in ended(process).lines


def test_ranks_that_end_with_0_after_the_signal_have_not_completed(tmp_path: Path) -> None:
    assert Host.with_script(tmp_path, HEARS, ENDS_WITH="0").stop_at("ready").code == 143


def test_unless_the_program_says_so(tmp_path: Path) -> None:
    says = "open(os.environ['SM_CHECKPOINT_DIR'] + '/status.json', 'w').write('{\"state\": \"completed\"}')\n"
    host = Host.with_script(tmp_path, HEARS.replace("sys.exit", says + "sys.exit"), ENDS_WITH="0")
    assert host.stop_at("ready").code == 0
    assert host.status == {"state": "completed"}


def test_a_rank_that_fails_while_it_saves_has_failed(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, HEARS, ENDS_WITH="1")
    assert host.stop_at("ready").code == 1
    assert host.failure.startswith("rank 0 exited with 1")


def test_what_is_left_at_the_deadline_is_killed_with_all_it_started_and_was_preempted(tmp_path: Path) -> None:
    starts = f"import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True)\n{IGNORES}"
    host = Host.with_script(tmp_path, starts, LAUNCH_STOP_SECONDS="1")
    done = host.stop_at("ready")
    assert done.code == 143
    assert host.status["reason"] == "SIGTERM; not all had ended 1 s later, and they were killed"
    child = next(int(line) for line in done.lines if line.isdigit())
    assert not Path(f"/proc/{child}/cwd").exists() or state_of(child) == "Z"


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_rank_that_died_of_the_signal_itself_was_preempted_too(tmp_path: Path) -> None:
    assert Host.with_script(tmp_path, SLEEPS, **TWO).stop_at("ready", times=2).code == 143


def test_ranks_that_other_hosts_told_to_stop_were_preempted_before_any_signal_came(tmp_path: Path) -> None:
    assert Host.with_script(tmp_path, "raise SystemExit(143)", **TWO).run().code == 143


def test_a_signal_from_somebody_else_to_a_rank_is_a_failure(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "import os; os.kill(os.getpid(), 15)")
    assert host.run().code == 1
    assert host.failure == "rank 0 was ended by signal 15 (Terminated)"


def test_a_signal_that_is_held_back_until_the_launcher_runs_is_not_lost(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "print('started')")
    become = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM}); "
        "os.kill(os.getpid(), signal.SIGTERM); os.execv(sys.executable, [sys.executable, sys.argv[1]])"
    )
    done = ended(host.start(sys.executable, "-c", become, str(host.code / "launch.py")))
    assert done.code == 143, done.errors
    assert "started" not in done.lines
    assert host.status["reason"] == "SIGTERM, before training began"


# Found before the real pip, as Python looks in the folder of the script first.
PIP = "import sys; print('pip', sys.argv[1:], flush=True)\n"


def test_requirements_are_installed_before_the_ranks_start(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "print('training')")
    (host.code / "requirements.txt").write_text("somepackage")
    (host.code / "pip.py").write_text(PIP)
    done = host.run()
    assert done.code == 0
    assert done.lines.index("pip ['install', '-r', 'requirements.txt']") < done.lines.index("training")


def test_requirements_that_cannot_be_installed_fail_the_job_with_pips_last_word(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "print('training')")
    (host.code / "requirements.txt").write_text("somepackage")
    (host.code / "pip.py").write_text("raise SystemExit('ERROR: no somepackage')")
    done = host.run()
    assert done.code == 1
    assert "training" not in done.lines
    assert host.failure == "pip install exited with 1: ERROR: no somepackage"


def test_a_stop_ends_the_installation(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "print('training')")
    (host.code / "requirements.txt").write_text("somepackage")
    (host.code / "pip.py").write_text(PIP + SLEEPS)
    done = host.stop_at("ready")
    assert done.code == 143
    assert "training" not in done.lines


def test_a_host_of_another_group_ends_in_order(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "print('training')")
    groups = [
        {"instance_group_name": "gpu", "instance_type": "ml.p4d.24xlarge", "hosts": ["algo-1"]},
        {"instance_group_name": "cpu", "instance_type": "ml.m5.large", "hosts": ["algo-2"]},
    ]
    resources = {"current_host": "algo-2", "hosts": ["algo-1", "algo-2"], "instance_groups": groups}
    host.tell("resourceconfig", resources)
    done = host.run()
    assert done.code == 0
    assert "launcher: algo-2 is in no group that trains; nothing to do" in done.lines
    assert "training" not in done.lines


def test_a_job_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    host = Host.with_script(tmp_path, "")
    host.tell("hyperparameters", {"sagemaker_program": '"run.sh"'})
    assert host.run().code == 1
    assert host.failure == "run.sh is no Python script; a shell in between would keep SIGTERM to itself"


# An orphan dies while its second parent, PID 1, has other things to do; only who buries it makes it vanish.
ORPHANS = """
import glob
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.1)
    os._exit(0)
os.wait()
def others():
    stats = [open(name).read().rpartition(")") for name in glob.glob("/proc/[0-9]*/stat")]
    mine = str(os.getpid())
    return [start for start, _, rest in stats if rest.split()[1] == "1" and start.split()[0] != mine]
deadline = time.monotonic() + 5
while others() and time.monotonic() < deadline:
    time.sleep(0.05)
print("other children of pid 1:", len(others()), flush=True)
"""


def test_T08_as_pid_1_it_hands_sigterm_on_and_buries_orphans(tmp_path: Path) -> None:
    namespace = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() != 0 or subprocess.run([*namespace, "true"], check=False).returncode:
        pytest.skip("a PID namespace of its own needs root and a kernel that lets it")
    script = HEARS.replace('print("ready"', ORPHANS + 'print("pid 1 is", os.getppid())\nprint("ready"')
    host = Host.with_script(tmp_path, script, ENDS_WITH="143")
    process = host.start(*namespace, sys.executable, str(host.code / "launch.py"))
    lines = lines_until(process, "ready")
    assert "pid 1 is 1" in lines
    assert "other children of pid 1: 0" in lines
    os.kill(int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()), signal.SIGTERM)
    done: Ended = ended(process)
    assert done.code == 143, done.errors
    assert "heard 1" in done.lines
    assert host.status["state"] == "preempted"
