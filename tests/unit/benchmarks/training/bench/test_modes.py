"""The options that the guides show are those of the program."""

import pytest

from benchmarks.training.bench.modes import read_options
from tests.markdown import codes, table, text_of

_TUNED = table(
    text_of("docs/training/cpu.md"), "options", "variables", "tokens/s", "compared with the first", "runs"
)


@pytest.mark.parametrize("row", _TUNED, ids=lambda row: f"{row[0]} {row[1]}")
def test_what_the_guide_of_cpus_measured_can_be_measured_again(row: list[str]) -> None:
    (options,) = codes(row[0])
    config, chosen = read_options([*options.split(), "--sequence-length", "512"])
    assert (config.preset, config.shape.sequence_length, len(chosen.chosen)) == ("tiny", 512, 1)
    assert row[3] == f"{float(row[2].replace(',', '')) / 5450:.1f}"
