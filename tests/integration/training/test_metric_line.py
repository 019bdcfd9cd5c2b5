"""The metric line of the real program, as SageMaker's regular expressions and other programs read it."""

import json
import re
from pathlib import Path

import pytest

from tests.integration.training.attempts import Job
from training.metrics import METRIC_DEFINITIONS, metrics_in

pytestmark = pytest.mark.thorough


def test_T17_each_definition_finds_its_number_once_a_step_in_a_real_log(tmp_path: Path) -> None:
    records = tmp_path / "metrics.jsonl"
    job = Job.under(tmp_path, "--steps", "4", "--log_every", "2", "--metrics_file", str(records))
    attempt = job.run("--checkpoint_every", "3", "--eval_every", "2", "--eval_batches", "1")
    assert attempt.exit_code == 0, attempt.errors

    log = "\n".join(attempt.lines)
    counts = {one["Name"]: len(re.findall(one["Regex"], log)) for one in METRIC_DEFINITIONS}
    elsewhere = ("train:mfu", "train:img_s", "validation:accuracy")  # a CPU has no peak, a text no images
    assert [counts.pop(name) for name in elsewhere] == [0, 0, 0]
    assert counts == dict.fromkeys(counts, 2)
    assert len(counts) == 17
    assert len(METRIC_DEFINITIONS) <= 40
    assert all(len(one["Regex"]) <= 500 for one in METRIC_DEFINITIONS)
    assert log.isascii()

    first, last = (found for line in attempt.lines if (found := metrics_in(line)))
    assert (first["step"], first["tokens"], last["step"], last["tokens"]) == ("2", "2048", "4", "4096")
    assert (first["ckpt_step"], first["ckpt_stall_ms"]) == ("0", "0.0")
    assert float(last["ckpt_stall_ms"]) > 0
    assert 0 < float(last["goodput"]) < 1
    assert float(last["tok_s"]) == float(last["tok_s_gpu"]) > 0

    unrounded = [json.loads(line) for line in records.read_text().splitlines()]
    assert [f"{one['loss']:.9f}" for one in unrounded] == [first["loss"], last["loss"]]
    assert [float.fromhex(one["loss_hex"]) for one in unrounded] == [one["loss"] for one in unrounded]
