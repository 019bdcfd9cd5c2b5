"""The page about instructions: its commands, one after the other, and what they print."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown import ROOT, blocks, text_of
from training.metrics import METRIC_DEFINITIONS, validation_in

pytestmark = pytest.mark.thorough

_GUIDE = text_of("docs/training/instructions.md")


def _shown() -> list[dict[str, str]]:
    return [found for line in _GUIDE.splitlines() if (found := validation_in(line))]


def test_the_commands_of_the_guide_train_and_evaluate_as_it_shows(tmp_path: Path) -> None:
    for name in ("docs", "training"):
        (tmp_path / name).symlink_to(ROOT / name)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)}
    printed = []
    for block in blocks(_GUIDE, "bash"):
        for line in block.text.splitlines():
            words = shlex.split(line)
            if words[0] == "python":
                words[0] = sys.executable
            done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            printed += done.stdout.splitlines()
    printed += (tmp_path / "questions.jsonl").read_text().splitlines()[:2]
    kept = ("build/questions/", '{"prompt"')
    assert sorted(line for line in printed if line.startswith(kept)) == sorted(
        line for line in _GUIDE.splitlines() if line.startswith(kept)
    )
    found = [told for line in printed if (told := validation_in(line))]
    assert [one["step"] for one in found] == [one["step"] for one in _shown()]
    assert [one["val_tokens"] for one in found] == [one["val_tokens"] for one in _shown()]
    # bf16 on another processor differs in the last digits, and steps add them up.
    for one, shown in zip(found, _shown(), strict=True):
        assert float(one["val_loss"]) == pytest.approx(float(shown["val_loss"]), rel=0.5)
    result = json.loads((tmp_path / "build/tuned/metrics.json").read_text())
    assert result["val_perplexity"] == pytest.approx(float(found[-1]["val_perplexity"]), rel=1e-4)

    log = "\n".join(printed)
    counts = {one["Name"]: len(re.findall(one["Regex"], log)) for one in METRIC_DEFINITIONS}
    assert counts["validation:loss"] == counts["validation:perplexity"] == 3
    assert counts["train:loss"] == counts["train:step"] == 40 + 120  # an evaluation is none of them
