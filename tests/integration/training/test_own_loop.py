"""The loop of docs/training/own-loop.md: what it adds to a plain one, and that a stop changes no loss."""

import re
import subprocess
from pathlib import Path

import pytest
from trainmaster_client.cli.training_code import training_code

from tests.integration.training.foreign_scripts import losses
from tests.integration.training.launches import Ended, Host
from tests.markdown import ROOT, blocks, text_of

PAGE = "docs/training/own-loop.md"
EXAMPLES = ROOT / "docs/examples/training"
STEPS = 60
UNCOUNTED = {"manifest.json", ".metadata"}
"""Files of a checkpoint that its manifest does not list."""


def _text(name: str) -> str:
    return (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")


def test_the_page_counts_the_lines() -> None:
    page = text_of(PAGE)
    assert _text("own_loop") in [block.text for block in blocks(page, "python")]
    (shown,) = blocks(page, "diff")  # test_docs_blocks.py compares it with the files
    changed = len(re.findall(r"^-", shown.text, re.MULTILINE))
    added = len(re.findall(r"^\+", shown.text, re.MULTILINE)) - changed
    assert re.findall(r"(\d+) lines are added, (\d+) changed", page) == [(str(added), str(changed))]


def _host(base: Path, script: str) -> Host:
    """Put beside the script what the page's command puts there."""
    host = Host.with_script(base, _text(script), STEPS=str(STEPS))
    training_code(host.code, loop=True, adapters=False, launcher_only=False)
    return host


def _stopped_and_resumed(host: Host, words: str) -> list[Ended]:
    first = host.stop_at(words)
    assert first.code == 143, first.errors
    last = max(losses(first))
    assert (host.status["state"], host.status["step"], host.status["lost_steps"]) == ("preempted", last, 0)
    second = host.run()
    assert second.code == 0, second.errors
    assert min(losses(second)) == last + 1
    assert host.status["state"] == "completed"
    return [first, second]


@pytest.mark.thorough
def test_a_loop_that_is_stopped_and_resumed_has_the_losses_of_one_that_is_not(tmp_path: Path) -> None:
    undisturbed = _host(tmp_path / "undisturbed", "own_loop").run()
    assert undisturbed.code == 0, undisturbed.errors
    plain = _host(tmp_path / "plain", "plain_loop").run()
    assert len(losses(plain)) == STEPS, plain.errors
    first, second = _stopped_and_resumed(_slow_host(tmp_path / "stopped"), "step=7 ")
    assert len(losses(undisturbed)) == STEPS
    assert losses(first) | losses(second) == losses(undisturbed)  # to the last digit


def _slow_host(base: Path) -> Host:
    """Let the loop wait in step 8 for the signal that the test sends: its steps take no time."""
    host = _host(base, "own_loop")
    script = host.code / "train.py"
    waits = "    while step == 8 and resumed is None and not stop.asked: pass\n"
    text, count = re.subn(r"(?m)^(\s+)torch\.manual_seed\(step\)\n", rf"\g<0>    {waits}", script.read_text())
    assert count == 1
    script.write_text(text)
    return host


@pytest.mark.thorough
def test_the_command_of_the_page_tells_what_a_save_cost(tmp_path: Path) -> None:
    host = _host(tmp_path / "ml", "own_loop")
    assert host.run().code == 0
    (command,) = [block.text for block in blocks(text_of(PAGE), "bash") if "manifest.json" in block.text]
    kept = command.replace("step-00000150", "step-00000050")  # of 60 steps, not of 200
    told = subprocess.run(kept, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    shown = re.fullmatch(r' "seconds": ([\d.]+),\n "bytes": (\d+)\n', told)
    assert shown, told
    files = (tmp_path / "ml/checkpoints/step-00000050").iterdir()
    assert int(shown[2]) == sum(file.stat().st_size for file in files if file.name not in UNCOUNTED)
    assert float(shown[1]) > 0
