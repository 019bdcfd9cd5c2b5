"""A command with an /opt of its own: what it sees, what stays, and how signals and exits get through."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from local import namespace
from local.namespace import in_namespace, namespaces_refused
from tests.integration.local.sagemaker_world import BUCKET, World, manual_clock, open_world
from tests.integration.local.test_sagemaker_processes import is_alive
from tests.integration.local.test_sagemaker_script_mode import channel

REFUSED = namespaces_refused()
allowed = pytest.mark.skipif(REFUSED is not None, reason=f"this machine refuses namespaces: {REFUSED}")

SCRIPT = "/opt/ml/input/data/sm_drivers/sm_train.sh"
AS_THE_SDK_V3 = ["/bin/bash", "-c", f"chmod +x {SCRIPT} && {SCRIPT}"]
"""Source: sagemaker-train 1.27, train/constants.py, DEFAULT_CONTAINER_ARGUMENTS."""


@pytest.fixture
def world(tmp_path):
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def inside(folder: Path, *argv: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        in_namespace(folder, argv), capture_output=True, text=True, timeout=60, check=False, cwd=folder
    )


@allowed
def test_opt_is_the_folder_and_what_the_machine_has_there_stays_in_sight(tmp_path):
    (tmp_path / "ml").mkdir()
    before = sorted(one.name for one in Path("/opt").iterdir())
    found = inside(tmp_path, "sh", "-c", "echo saved > /opt/ml/model; ls -1 /opt; id -u")
    assert found.stdout.splitlines() == [*sorted({*before, "ml"}), str(os.getuid())], found.stderr
    assert (tmp_path / "ml/model").read_text() == "saved\n"
    assert sorted(one.name for one in Path("/opt").iterdir()) == before


@allowed
def test_an_entry_of_the_machine_keeps_its_content(tmp_path):
    opt = tmp_path / "opt"
    (opt / "tool").mkdir(parents=True)
    (opt / "tool/a").write_text("a")
    (opt / "note").write_text("n")
    (opt / "link").symlink_to("tool")
    (opt / "ml").mkdir()
    (opt / "ml/theirs").write_text("")
    (tmp_path / "own/ml").mkdir(parents=True)
    program = (
        "import sys; from pathlib import Path; from local import namespace; "
        f"namespace._OPT = Path({str(opt)!r}); "
        f"namespace.main(Path({str(tmp_path / 'own')!r}), ['sh', '-c', sys.argv[1]])"
    )
    looks = f"cd {opt}; cat tool/a note link/a; ls -A ml"
    found = subprocess.run(
        [sys.executable, "-c", program, looks], capture_output=True, text=True, check=False
    )
    assert found.stdout == "ana", found.stderr


@allowed
def test_a_signal_goes_to_the_command_itself_and_its_exit_code_comes_back(tmp_path):
    waits = "trap 'exit 7' TERM; echo $$; while :; do sleep 0.02; done"
    process = subprocess.Popen(in_namespace(tmp_path, ["sh", "-c", waits]), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == process.pid
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 7


@allowed
def test_a_command_that_does_not_exist_is_told_as_docker_tells_it(tmp_path):
    found = inside(tmp_path, "no-such-command")
    assert (found.returncode, found.stderr) == (127, "no-such-command: No such file or directory\n")


def test_a_refusal_is_told_with_the_call_that_was_refused(tmp_path, monkeypatch, capsys):
    def refuse(_flags):
        raise PermissionError(1, "Operation not permitted", "unshare")

    monkeypatch.setattr(namespace, "_enter", lambda: refuse(0))
    assert namespace.main(tmp_path, ["true"]) == 70
    assert capsys.readouterr().err == "unshare: Operation not permitted\n"


def test_what_the_try_said_is_why_namespaces_are_refused(monkeypatch):
    says = [sys.executable, "-c", "import sys; sys.exit('unshare: Operation not permitted')"]
    monkeypatch.setattr(namespace, "in_namespace", lambda *_: says)
    namespaces_refused.cache_clear()
    try:
        assert namespaces_refused() == "unshare: Operation not permitted"
    finally:
        namespaces_refused.cache_clear()


def v3_job(world: World, script: str) -> dict[str, object]:
    world.store.write(BUCKET, "drivers/sm_train.sh", f"#!/bin/bash\n{script}\n".encode())
    return {"InputDataConfig": [channel("sm_drivers", "drivers") | {"InputMode": "File"}]}


@allowed
def test_the_script_of_the_sdk_v3_finds_its_folder_under_its_name(world: World):
    script = (
        "echo $SM_MODEL_DIR $SM_CHANNEL_SM_DRIVERS; cat /opt/ml/input/config/checkpointconfig.json; echo\n"
        "cat /opt/ml/input/config/hyperparameters.json; echo; echo 1 > /opt/ml/checkpoints/a"
    )
    world.train_to_end(
        "job",
        AS_THE_SDK_V3,
        **v3_job(world, script),
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/ckpt"},
        HyperParameters={"out": "/opt/ml/model"},
    )
    assert world.describe("job")["SecondaryStatus"] == "Completed", world.logs.messages("job")
    assert world.logs.messages("job") == [
        "/opt/ml/model /opt/ml/input/data/sm_drivers",
        '{"LocalPath": "/opt/ml/checkpoints"}',
        '{"out": "/opt/ml/model"}',
    ]
    assert world.store.objects[BUCKET]["ckpt/a"] == b"1\n"


@allowed
def test_what_it_wrote_to_the_failure_file_is_the_reason(world: World):
    world.train_to_end(
        "job", AS_THE_SDK_V3, **v3_job(world, "echo -n broken > /opt/ml/output/failure; exit 3")
    )
    assert world.describe("job")["FailureReason"] == "AlgorithmError: broken, exit code: 3"


@allowed
def test_a_stop_reaches_its_first_process_and_ends_what_that_leaves_behind(world: World):
    script = (
        "setsid sleep 999 & trap 'echo told; exit 0' TERM; echo $!; echo ready; while :; do sleep 0.02; done"
    )
    # Without exec, bash is the first process, as with the SDK, and keeps the signal until the script ends.
    command = ["/bin/bash", "-c", f"chmod +x {SCRIPT} && exec {SCRIPT}"]
    world.train("job", command, **v3_job(world, script))
    world.wait_for_line("job", "ready")
    left, _ = world.logs.messages("job")
    world.stop("job")
    world.wait_until("job", "Uploading")
    world.advance(40)
    assert world.finished("job")["SecondaryStatus"] == "Stopped"
    assert world.logs.messages("job") == [left, "ready", "told"]
    assert not is_alive(int(left))


@allowed
def test_the_end_of_one_job_leaves_the_processes_of_another_alone(world: World):
    world.train("long", AS_THE_SDK_V3, **v3_job(world, "echo ready; sleep 60"))
    world.wait_for_line("long", "ready")
    world.train_to_end("short", AS_THE_SDK_V3, **v3_job(world, "true"))
    assert world.describe("short")["SecondaryStatus"] == "Completed"
    assert [event for event, *_ in world.process_events("long")] == ["start"]
    assert world.secondary("long") == "Training"


def test_where_namespaces_are_refused_the_job_fails_and_says_what_to_do(world: World, monkeypatch):
    monkeypatch.setattr("local.sagemaker.container.namespaces_refused", lambda: "unshare: not permitted")
    world.train_to_end("job", AS_THE_SDK_V3, **v3_job(world, "true"))
    assert world.describe("job")["FailureReason"] == (
        "ClientError: The SDK v3 starts its jobs with scripts that need /opt/ml itself, and this machine "
        "refuses the namespaces that the twin makes one in: unshare: not permitted. Allow unprivileged user "
        "namespaces, or give the job a ContainerEntrypoint of its own (use_launcher)"
    )
