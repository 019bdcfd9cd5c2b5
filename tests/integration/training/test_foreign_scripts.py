"""Scripts of Hugging Face's Trainer, Lightning and Accelerate, with the adapters that are shipped."""

import json
import shutil
from pathlib import Path

import pytest

from tests.integration.training.foreign_scripts import SCRIPTS, host_of, losses
from tests.markdown import blocks, text_of

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize("script", SCRIPTS)
def test_M10_a_script_that_is_stopped_in_a_step_saves_it_and_the_next_attempt_goes_on(
    script: str, tmp_path: Path
) -> None:
    undisturbed = host_of(script, tmp_path / "undisturbed", STEPS="20").run()
    assert undisturbed.code == 0, undisturbed.errors
    host = host_of(script, tmp_path / "stopped", STEPS="20", READ_SECONDS="0.2")
    first = host.stop_at("step=12 ")
    assert first.code == 143, first.errors
    last = max(losses(first))
    status = host.status
    assert last in {12, 13, 14}  # 12 where the signal came before the end of its step was looked at
    assert (status["state"], status["step"], status["steps"], status["lost_steps"]) == (
        "preempted",
        last,
        20,
        0,
    )
    assert (
        json.loads((host.base / "checkpoints" / status["checkpoint"] / "whole.json").read_bytes())["step"]
        == last
    )
    host.env["READ_SECONDS"] = "0"
    second = host.run()
    assert second.code == 0, second.errors
    assert list(losses(second)) == list(range(last + 1, 21))
    assert losses(first) | losses(second) == losses(undisturbed)  # to the last digit, over epochs of 16 steps
    assert host.status["state"] == "completed"


def test_M10_two_ranks_leave_after_the_same_step(tmp_path: Path) -> None:
    host = host_of("accelerate_loop", tmp_path, STEPS="20", READ_SECONDS="0.2", NPROC_PER_NODE="2")
    first = host.stop_at("step=5 ")
    assert first.code == 143, first.errors
    last = max(losses(first))
    assert last in {5, 6, 7}  # 5 where the signal came before the end of its step was looked at
    second = host.run()
    assert second.code == 0, second.errors
    assert list(losses(second)) == list(range(last + 1, 21))


def test_a_torn_checkpoint_is_passed_over(tmp_path: Path) -> None:
    host = host_of("accelerate_loop", tmp_path, STEPS="41")
    assert host.run().code == 0
    for name in ("step-00000041/whole.json", "step-00000040/model.safetensors"):
        (host.base / "checkpoints" / name).unlink()
    shutil.copytree(host.base / "checkpoints/step-00000040", host.base / "checkpoints/step-00000020")
    (host.base / "checkpoints/step-00000020/whole.json").write_text(
        '{"step": 20, "files": {}, "saved_at": ""}'
    )
    second = host.run()
    assert "skipping torn checkpoint step-00000041: it was never finished" in second.lines
    assert "skipping torn checkpoint step-00000040: model.safetensors is missing" in second.lines
    assert "step-00000020" in second.errors  # it was the one that Accelerate was given


def test_the_page_shows_the_scripts_that_run_here() -> None:
    shown = [block.text for block in blocks(text_of("docs/training/scripts.md"), "python")]
    assert [script for script in SCRIPTS if _text(script) in shown] == list(SCRIPTS)


def _text(script: str) -> str:
    return (Path(__file__).parents[3] / f"docs/examples/training/{script}.py").read_text(encoding="utf-8")
