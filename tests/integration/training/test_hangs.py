"""Ranks that hang, and ranks that are asked by signals, under the launcher: stacks and traces are there."""

import os
import signal
from pathlib import Path

import pytest
from trainmaster.core.diagnosis.diagnosis import FailureEvidence, diagnose
from trainmaster.core.jobs.failures import FailureClass

from tests.integration.training.launches import Host, ended, lines_until
from training import flight

# The program itself; its second rank stops inside of a step, so the first one waits in a collective.
HANGS = """
import os, sys, time
import train
import training.loop

def never_comes_back():
    time.sleep(600)

clip = training.loop.clip
def hanging(*given):
    hanging.calls += 1
    if hanging.calls == 7 and os.environ["RANK"] == "1":
        never_comes_back()
    return clip(*given)

hanging.calls = 0
training.loop.clip = hanging
sys.exit(train.main(sys.argv[1:]))
"""
OPTIONS = {
    "steps": "20",
    "batch_size": "4",
    "sequence_length": "16",
    "checkpoint_every": "5",
    "checkpoint_async": "false",
    "hang_seconds": "2",
    "debug": "info",
}


@pytest.mark.thorough
def test_a_rank_that_never_reaches_a_collective_ends_the_attempt_with_the_stacks_of_all(
    tmp_path: Path,
) -> None:
    host = Host.with_program(tmp_path, NPROC_PER_NODE="2", TORCH_CPP_LOG_LEVEL="ERROR")
    (host.code / "hangs.py").write_text(HANGS)
    host.tell("hyperparameters", {"sagemaker_program": "hangs.py", **OPTIONS})
    done = host.run()
    assert done.code == 1, done.errors
    assert host.failure.startswith("hang: no rank has finished a step for ")
    assert " s) since step 6: rank 1 in never_comes_back (hangs.py:7); rank 0 in " in host.failure
    assert (host.status["state"], host.status["reason"]) == ("failed", host.failure)
    assert host.status["checkpoint"] == "step-00000005"
    log = done.errors.splitlines()
    first, second = (
        next(at for at, line in enumerate(log) if line.startswith(f"launcher: rank {rank}, process "))
        for rank in (0, 1)
    )
    assert any("in settled" in line or "in all_reduce" in line for line in log[first:second])
    assert any("in never_comes_back" in line for line in log[second:])
    found = diagnose(FailureEvidence(failure_reason=f"AlgorithmError: {host.failure}, exit code: 1"))
    assert found.failure_class is FailureClass.NETWORK
    assert found.advice.startswith("The ranks hung")
    assert diagnose(FailureEvidence(exit_code=1, log_tail=tuple(log))).advice == found.advice
    calls = flight.groups_of(flight.read(tmp_path / "output/data"))
    told = list(flight.verdicts(calls, [0, 1]))
    assert any("rank 1 is missing in collective" in line for line in told), told


@pytest.mark.thorough
def test_a_running_job_answers_signals_with_traces_of_all_ranks_and_stacks_of_one(tmp_path: Path) -> None:
    host = Host.with_program(tmp_path, NPROC_PER_NODE="2", TORCH_CPP_LOG_LEVEL="ERROR")
    paced = {
        "steps": "40",
        "min_step_seconds": "0.05",
        "profile_ranks": "all",
        "hang_seconds": "0",
        "debug": "off",
    }
    host.tell("hyperparameters", OPTIONS | paced)
    launcher = host.start()
    lines_until(launcher, "step=3 ")  # by now both ranks listen
    (_, second) = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    launcher.send_signal(signal.SIGUSR2)
    told = lines_until(launcher, '"kind":"profile"')[-1]
    os.kill(int(second), signal.SIGUSR1)
    done = ended(launcher)
    assert done.code == 0, done.errors
    assert '"path":"' in told
    # Each rank traces its own next step, so the steps may differ by one.
    traces = {path.name for path in (tmp_path / "output/data").iterdir()}
    assert {name[len("trace-step-00000000") :] for name in traces} == {".json", "-rank-1.json"}, traces
    assert "Current thread" in done.errors or "Thread 0x" in done.errors
    assert any("loop.py" in line and "in run" in line for line in done.errors.splitlines()), done.errors
    assert host.status["state"] == "completed"
