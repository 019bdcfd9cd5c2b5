"""``trainmaster training-code``: a source directory out of what is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.integration.client.command import Ran, Trainmaster
from tests.markdown import ROOT, blocks, text_of

TRAINING = ROOT / "training"


def test_the_adapters_import_each_other_from_where_they_are_put(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    ran = trainmaster("training-code", str(tmp_path), "--adapters")
    assert ran.code == 0, ran.err
    assert (tmp_path / "launch.py").is_file()
    assert (tmp_path / "training/preemptible/adapters/hf_trainer.py").is_file()
    assert {path.name for path in (tmp_path / "training").iterdir()} == {
        "__init__.py",
        "old_names.py",
        "preemptible",
    }
    program = "import training.preemptible.adapters.attempts as here; print(here.__file__)"
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert told.stdout == f"{tmp_path}/training/preemptible/adapters/attempts.py\n", told.stderr


def test_C40_the_loop_of_the_guide_runs_with_what_its_option_copies(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    """As a job runs it: in this folder alone, and a second start resumes from the first's checkpoint."""
    assert trainmaster("training-code", str(tmp_path), "--loop").code == 0
    assert not (tmp_path / "training/loop.py").exists()
    (guide,) = (
        block
        for block in blocks(text_of("docs/training/preemption.md"), "python")
        if "def main" in block.text
    )
    (tmp_path / "loop.py").write_text(guide.text, encoding="utf-8")
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    env["SM_CHECKPOINT_DIR"] = str(tmp_path / "checkpoints")

    def steps() -> list[str]:
        done = subprocess.run(
            [sys.executable, "loop.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return re.findall(r"^step=(\d+)", done.stdout, re.MULTILINE)

    assert steps() == [str(step) for step in range(1, 201)]
    assert steps() == []  # the last checkpoint is that of the last step that saved, 200


def test_a_copy_for_a_script_answers_to_the_names_of_version_0_1(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    """A script that was written with the names of before needs no edit for one release."""
    assert trainmaster("training-code", str(tmp_path), "--loop").code == 0
    program = (
        "from training.checkpoint import Checkpointer as old\n"
        "from training.preemptible.checkpoint import Checkpointer as new\n"
        "from training.errors import CheckpointReadError\n"
        "from training.checkpoint.manifest import Manifest\n"
        "from training.agreement import Agreement\n"
        "from training.preempt import EXIT_PREEMPTED, StopRequest\n"
        "from training.adapters.attempts import Attempt\n"
        "print(old is new)"
    )
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert told.stdout == "True\n", told.stderr
    assert "training.checkpoint is now training.preemptible.checkpoint; the old name goes" in told.stderr


def test_a_folder_that_an_earlier_version_copied_keeps_its_own_modules(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    """Its package is replaced by today's, as a user does who is told that the file differs."""
    assert trainmaster("training-code", str(tmp_path), "--loop").code == 0
    (tmp_path / "training/checkpoint").mkdir()
    for name in ("__init__", "manifest"):
        (tmp_path / f"training/checkpoint/{name}.py").write_text("MINE = True\n")
    program = "import training.checkpoint.manifest as here; print(here.MINE, here.__name__)"
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.stdout == "True training.checkpoint.manifest\n", told.stderr


def test_the_tools_are_copied_with_the_program_that_they_import(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    assert trainmaster("training-code", str(tmp_path), "--tools").code == 0
    (tmp_path / "a.txt").write_text("ab")
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    for number, program in enumerate(
        (["-m", "tools.training.prepare"], ["-m", "training.prepare"], ["tools/training/prepare.py"])
    ):
        out = tmp_path / f"out-{number}"
        command = [sys.executable, *program, "--input", "a.txt", "--output", str(out)]
        ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert (ran.returncode, (out / "index.json").is_file()) == (0, True), ran.stderr
    assert not (tmp_path / "launch.py").exists()


def test_the_whole_program_is_copied_without_the_tools_of_the_checkout(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "source"
    ran = trainmaster("training-code", str(folder))
    copied = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert ran == Ran(0, f"{folder}: {len(copied)} files\n", "")
    assert copied == {path.relative_to(TRAINING).as_posix() for path in TRAINING.rglob("*.py")}
    assert {"launch.py", "train.py", "preemptible/checkpoint/saver.py"} <= copied
    assert (folder / "train.py").read_bytes() == (TRAINING / "train.py").read_bytes()


def test_the_launcher_alone_joins_what_is_there(trainmaster: Trainmaster, tmp_path: Path) -> None:
    (tmp_path / "my_script.py").write_text("mine")
    ran = trainmaster("training-code", str(tmp_path), "--launcher-only")
    assert ran == Ran(0, f"{tmp_path}: 1 file\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["launch.py", "my_script.py"]
    assert (tmp_path / "launch.py").read_bytes() == (TRAINING / "launch.py").read_bytes()
    assert trainmaster("training-code", str(tmp_path), "--launcher-only").code == 0, "again is fine"


def test_a_file_of_the_users_is_never_written_over_and_nothing_is_half_copied(
    trainmaster: Trainmaster, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("mine")
    ran = trainmaster("training-code", str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert f"{tmp_path / 'train.py'} already exists" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_folder_that_cannot_be_made_is_one_line(trainmaster: Trainmaster, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = trainmaster("training-code", str(tmp_path / "file" / "source"), "--launcher-only")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "cannot be written: Not a directory" in ran.err
