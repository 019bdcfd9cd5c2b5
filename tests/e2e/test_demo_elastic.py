"""``make demo-elastic`` as a user runs it; what it claims is computed again here from its facts."""

import json
import subprocess
import sys
from itertools import chain
from typing import Any

import pytest

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("elastic") / "elastic.json"
    command = [sys.executable, "-m", "demos.elastic", "--json", str(path)]
    # Without a limit: a demo gives up by itself where nothing changes any more.
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_every_check_passes(report: dict[str, Any]) -> None:
    assert (report["schema"], report["name"], report["ok"]) == ("trainmaster.report/1", "elastic", True)


def test_R5_losses_over_four_widths_are_those_of_one_undisturbed_rank(report: dict[str, Any]) -> None:
    losses = {step: loss for step, _, loss in report["facts"]["losses"]}
    alone = {step: loss for step, _, loss in report["facts"]["undisturbed"]}
    assert losses.keys() == alone.keys() == set(range(1, 33))
    assert max(abs(losses[step] - alone[step]) for step in losses) <= 1e-6
    assert [width for _, width, _ in report["facts"]["losses"]] == [2] * 7 + [4] * 6 + [1] * 9 + [4] * 10


def test_R5_every_epoch_saw_each_sample_once(report: dict[str, Any]) -> None:
    samples = {int(step): seen for step, seen in report["facts"]["samples"].items()}
    epochs = [chain.from_iterable(samples[first + at] for at in range(8)) for first in range(1, 33, 8)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(32))] * 4
