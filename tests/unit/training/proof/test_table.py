import pytest

from tests.unit.training.proof.facts import facts, interrupted, uninterrupted
from training.proof.plot import print_runs


def test_the_table_says_how_far_the_losses_are_apart(capsys: pytest.CaptureFixture[str]) -> None:
    other = interrupted(worlds=(2, 4), signal="5:KILL", resumed=3) | {"id": "other", "final_hashes": None}
    other["losses"][-1] = [8, (4.5 + 2e-7).hex()]
    print_runs(facts(uninterrupted(), interrupted(), other))
    assert capsys.readouterr().out.split() == [
        *("RUN", "RANKS", "EXIT", "CODES", "REPLAYED", "LARGEST", "DIFFERENCE", "WEIGHTS", "OPTIMIZER"),
        *("fp32-uninterrupted", "2", "0", "0", "-", "aaaaaaaaaaaa", "bbbbbbbbbbbb"),
        *("fp32-interrupted", "2,2", "143,0", "0", "0", "aaaaaaaaaaaa", "bbbbbbbbbbbb"),
        *("other", "2,4", "-9,0", "2", "2.0e-07", "-", "-"),
    ]
