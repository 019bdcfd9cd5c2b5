"""``local up`` as a command: what it prints, what it refuses, and that nothing of it stays behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.plane import GONE_SECONDS, PATIENCE_SECONDS, Plane, eventually, python, running_plane
from tests.e2e.process_tree import children_of, still_alive, tree_of

pytestmark = pytest.mark.thorough

STUBBORN = (
    "import os,signal,subprocess,time\n"
    "signal.signal(signal.SIGTERM,signal.SIG_IGN)\n"
    "subprocess.Popen(['sleep','999'],start_new_session=True,env={},stdout=-3,stderr=-3)\n"
    "os.fork() or (os.setsid(),os.fork(),time.sleep(999))\n"
    "print('ready',flush=True)\n"
    "time.sleep(999)"
)
"""Ignores SIGTERM; has a child without an environment in a session of its own, and a daemon with a child."""


@pytest.mark.parametrize("victim", ["the process in the ready file", "the twin below it"])
def test_kill_9_leaves_no_process_behind(tmp_path, victim):
    with running_plane(tmp_path) as plane:
        start_stubborn(plane)
        pid = plane.twin.ready["pid"]
        (twin,) = children_of(pid)
        everything = tree_of(pid)
        os.kill(twin if victim == "the twin below it" else pid, signal.SIGKILL)
        assert not still_alive(everything, within_seconds=GONE_SECONDS)


def start_stubborn(plane: Plane) -> None:
    plane.client("sagemaker").create_training_job(**plane.request("stubborn", python(STUBBORN)))
    plane.await_log("stubborn", "ready")
    root = plane.processes("stubborn")[0]["pid"]
    eventually(lambda: tree_of(plane.twin.ready["pid"]), lambda tree: root in tree and len(tree) > 5)


def test_json_is_the_ready_file_alone_on_standard_output():
    process = subprocess.Popen(
        [sys.executable, "-m", "local", "up", "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    process.terminate()
    rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert rest == ""
    assert ready["pid"] == process.pid
    assert ready["api_url"].startswith(ready["endpoint_url"])


def test_a_port_in_use_is_one_clear_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused("--port", str(port)) == f"port {port} is in use; choose another one with --port"


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        pytest.param("version: [", "while parsing", id="not YAML"),
        pytest.param("version: 1\npols: []", "pols", id="a key that is none"),
    ],
)
def test_a_bad_policy_is_one_clear_line(tmp_path, document, complaint):
    file = tmp_path / "policy.yaml"
    file.write_text(document)
    assert complaint in refused("--port", "0", "--policy", str(file))


def test_a_policy_that_is_not_there_is_one_clear_line(tmp_path):
    missing: Path = tmp_path / "none.yaml"
    assert refused("--policy", str(missing)) == f"policy {missing}: No such file or directory"


def refused(*options: str) -> str:
    """The one line that ``local up`` prints before it ends with code 2."""
    done = subprocess.run(
        [sys.executable, "-m", "local", "up", *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("local up: ")
    return line.removeprefix("local up: ")
