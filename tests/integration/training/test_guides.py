"""The pages about strategies and precision do what they say."""

import shlex
from itertools import chain, pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.integration.training.learning import BATCH, loss_of, tokens_of
from tests.markdown import blocks, codes, table, text_of
from training.config import TrainConfig, read_config, reader
from training.config.choices import Strategy
from training.models.transformer import Transformer
from training.ranks.world import World

pytestmark = pytest.mark.thorough

_STRATEGIES = text_of("docs/training/strategies.md")
_PRECISION = text_of("docs/training/precision.md")


def _run(text: str) -> dict[str, Any]:
    """What the one Python block of a page defines."""
    (block,) = blocks(text, "python")
    names: dict[str, Any] = {}
    exec(compile(block.text, "guide", "exec"), names)
    return names


def test_the_loop_of_the_guide_learns(world: World) -> None:
    losses: list[float] = []

    def part(model: Transformer, tokens: Tensor) -> Tensor:
        loss = loss_of(model, tokens)
        losses.append(loss.item())
        return loss

    halves = tokens_of(1).split(BATCH // 2)
    step = [lambda model, tokens=tokens: part(model, tokens) for tokens in halves]
    config = TrainConfig(preset="tiny", lr=1e-3, strategy=Strategy.SHARD_GRAD_OP)
    model = _run(_STRATEGIES)["train"](config, world, [step] * 4)
    assert isinstance(model, Transformer)
    whole = [first + second for first, second in zip(losses[::2], losses[1::2], strict=True)]
    assert len(whole) == 4
    assert all(later < earlier for earlier, later in pairwise(whole))


def test_the_sum_of_the_guide_is_the_one_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    _run(_PRECISION)
    assert capsys.readouterr().out == "0.98828125\n"
    assert "# 0.98828125;" in _PRECISION


def test_every_command_has_options_that_there_are() -> None:
    commands = [block.text.replace("\\\n", " ") for block in blocks(_STRATEGIES, "bash")]
    (words,) = [shlex.split(line) for line in chain(*(command.splitlines() for command in commands))]
    config = read_config(words[words.index("training/train.py") + 1 :], {})
    assert config.strategy is Strategy.SHARD_GRAD_OP


def test_every_strategy_and_every_option_of_fsdp1_has_its_row() -> None:
    rows = table(_STRATEGIES, "`strategy`", "divided among", "weights after the forward pass", "use it")
    assert [codes(row[0]) for row in rows] == [[one.value] for one in Strategy]
    named = list(chain(*(codes(row[0]) for row in table(_STRATEGIES, "FSDP1", "here"))))
    assert sorted(named) == sorted([*reader._TURNED, *reader._RENAMED, *reader._BUILT_IN])


def test_the_state_of_each_preset_is_what_the_guide_says() -> None:
    rows = table(_STRATEGIES, "preset", "parameters", "state", "8 ranks", "128 ranks", "checkpoint")
    for preset, _, state, eight, many, checkpoint in rows:
        with torch.device("meta"):
            model = Transformer(TrainConfig(preset=codes(preset)[0]).text_shape)
        numbers = sum(one.numel() for one in model.parameters())
        gibibytes = numbers * 16 / 2**30
        assert [state, eight, many] == [f"{gibibytes / ranks:.1f} GiB" for ranks in (1, 8, 128)]
        assert checkpoint == f"{numbers * 12 / 1e9:.0f} GB"
