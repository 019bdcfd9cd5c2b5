import re

import pytest

from training.metrics import METRIC_DEFINITIONS, Progress

LINE = Progress(step=12, steps=60, loss=5.4321098765, lr=3e-4, tokens_per_s=9876.5).line()


def test_the_line_reads_as_documented() -> None:
    assert LINE == "[step 12/60] loss=5.432109877 lr=3.000000e-04 tokens_per_s=9876"


@pytest.mark.parametrize(
    ("name", "value"),
    [("train:loss", 5.432109877), ("train:lr", 3e-4), ("train:tokens_per_s", 9876)],
)
def test_a_definition_reads_its_number_from_the_line(name: str, value: float) -> None:
    (regex,) = [one["Regex"] for one in METRIC_DEFINITIONS if one["Name"] == name]
    assert [float(found) for found in re.findall(regex, LINE)] == [value]


def test_another_loss_is_not_mistaken_for_this_one() -> None:
    assert not re.search(METRIC_DEFINITIONS[0]["Regex"], "[step 12/60] val_loss=5.4")


def test_the_definitions_are_within_sagemakers_limits() -> None:
    """API reference, AlgorithmSpecification and MetricDefinition."""
    assert len(METRIC_DEFINITIONS) <= 40
    assert all(len(one["Name"]) <= 255 and len(one["Regex"]) <= 500 for one in METRIC_DEFINITIONS)
