"""Masked and packed data, and the evaluation beside it: the same whatever the ranks, parts and stops."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch.nn.functional import cross_entropy

from tests.integration.training.worlds import in_world
from tests.unit.training.data.corpora import written_documents
from tools.training.prepare import main as prepare
from training.config import read_config
from training.data.batches import IGNORED, batch_of
from training.data.corpus import opened
from training.job import make_model, run_in
from training.preemptible.preempt import StopRequest
from training.ranks.world import World

_OPTIONS = (
    "--preset=tiny",
    "--sequence_length=32",
    "--batch_size=8",
    "--steps=6",
    "--precision=fp32",
    "--seed=1",
)
_EVALUATED = ("--eval_every=2", "--eval_batches=0")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sums as prompts, packed; 23 validation sequences, so the last batch is not full."""
    folder = tmp_path_factory.mktemp("sums")
    lines = [{"prompt": f"{one}+{one + 3}=", "response": str(2 * one + 3)} for one in range(500)]
    (folder / "sums.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    share = ("--validation-share", "0.2", "--pack", "32")
    assert prepare(["--input", str(folder / "sums.jsonl"), "--output", str(folder / "out"), *share]) == 0
    return folder / "out"


def _options(corpus: Path, root: Path, *options: str) -> tuple[str, ...]:
    data = (f"--data={corpus / 'train'}", "--document_mask=true")
    places = (
        f"--checkpoint_dir={root}",
        f"--model_dir={root / 'model'}",
        f"--metrics_file={root / 'metrics'}",
    )
    return (*_OPTIONS, *data, *places, "--export=false", *options)


def _run(world: World, options: tuple[str, ...], stop_at_vote: int = 0) -> int:
    stop = _StopAtVote(stop_at_vote) if stop_at_vote else StopRequest()
    return run_in(world, read_config(options, {}), {}, stop)


class _StopAtVote(StopRequest):
    """As if the signal had come before this vote."""

    def __init__(self, vote: int) -> None:
        super().__init__()
        self._left = vote

    @property
    def asked(self) -> bool:
        self._left -= 1
        return self._left < 0


def _losses(root: Path) -> list[str]:
    return [json.loads(line)["loss_hex"] for line in (root / "metrics").read_text().splitlines()]


def _validation(root: Path) -> float:
    found: float = json.loads((root / "model/metrics.json").read_text())["val_loss"]
    return found


def _evaluated(corpus: Path) -> tuple[str, ...]:
    return (f"--eval_data={corpus / 'validation'}", *_EVALUATED)


@pytest.mark.thorough
def test_with_or_without_evaluation_the_losses_and_the_checkpoint_are_the_same(
    corpus: Path, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert in_world(2, _run, _options(corpus, one)) == [0, 0]
    assert in_world(2, _run, _options(corpus, other, *_evaluated(corpus))) == [0, 0]
    assert _losses(one) == _losses(other)
    for shard in (one / "step-00000006").glob("*.distcp"):
        assert shard.read_bytes() == (other / "step-00000006" / shard.name).read_bytes()


@pytest.mark.thorough
def test_losses_and_validation_do_not_depend_on_ranks_and_parts(corpus: Path, tmp_path: Path) -> None:
    found = []
    for ranks, parts, chunk in ((1, 1, 0), (2, 1, 0), (2, 2, 0), (1, 1, 50)):
        root = tmp_path / f"{ranks}-{parts}-{chunk}"
        cut = (f"--gradient_accumulation_steps={parts}", f"--loss_chunk={chunk}")
        options = _options(corpus, root, *_evaluated(corpus), *cut)
        assert in_world(ranks, _run, options) == [0] * ranks
        found.append([*(float.fromhex(one) for one in _losses(root)), _validation(root)])
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=0, abs=2e-6)
    assert found[0][5] < found[0][0]


def _loss_by_hand(world: World, corpus: Path, options: tuple[str, ...]) -> float:
    """Of the untrained model, over the validation data, one sequence at a time."""
    config = read_config(options, {})
    model = make_model(config, world)
    held_out = opened(str(corpus / "validation"), config, {}, option="eval_data", at_least=1)
    total, count = 0.0, 0
    assert held_out.sequences is not None
    for number in range(held_out.sequences):
        inputs, targets, documents = batch_of(held_out, [number], 32, by_document=True)
        with torch.no_grad():
            losses = cross_entropy(model(inputs, documents)[0].double(), targets[0], reduction="none")
        total, count = total + losses.sum().item(), count + int((targets != IGNORED).sum())
    return total / count


def test_the_validation_loss_is_the_mean_over_the_answers(corpus: Path, tmp_path: Path) -> None:
    options = _options(corpus, tmp_path, *_evaluated(corpus), "--lr=0", "--steps=2", "--batch_size=20")
    assert in_world(2, _run, options) == [0, 0]
    (expected,) = in_world(1, _loss_by_hand, corpus, options)
    assert _validation(tmp_path) == pytest.approx(expected, abs=1e-6)
    told = json.loads((tmp_path / "model/metrics.json").read_text())
    assert told["val_perplexity"] == pytest.approx(math.exp(expected), rel=1e-5)


@pytest.mark.thorough
def test_an_evaluation_that_a_stop_dropped_is_made_by_the_next_attempt(corpus: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert in_world(1, _run, _options(corpus, one, *_evaluated(corpus))) == [0]
    # Votes: two before the first step, two in each of two steps, then of the evaluation's batches.
    stopped = in_world(1, _run, _options(corpus, other, *_evaluated(corpus)), 7)
    assert stopped == [143]
    status = json.loads((other / "status.json").read_text())
    assert status["step"] == 2
    assert "eval_step" not in status["carried"]
    assert in_world(1, _run, _options(corpus, other, *_evaluated(corpus))) == [0]
    assert _losses(one) == _losses(other)
    assert _validation(one) == _validation(other)


@pytest.mark.thorough
def test_synthetic_data_is_evaluated_on_sequences_that_are_not_trained(tmp_path: Path) -> None:
    places = (f"--checkpoint_dir={tmp_path}", f"--model_dir={tmp_path / 'model'}", "--export=false")
    options = (*_OPTIONS, "--steps=60", "--lr=3e-3", *places, "--eval_every=60", "--eval_batches=4")
    assert in_world(1, _run, options) == [0]
    assert 1.1 < _validation(tmp_path) < 5.0  # the language's entropy is 1.11, that of a guess 5.55


@pytest.mark.thorough
def test_a_small_weight_of_the_z_loss_leaves_the_first_loss_and_changes_the_next(
    corpus: Path, tmp_path: Path
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert in_world(1, _run, _options(corpus, one)) == [0]
    assert in_world(1, _run, _options(corpus, other, "--z_loss=0.01")) == [0]
    assert _losses(one)[0] == _losses(other)[0]
    assert _losses(one)[2:] != _losses(other)[2:]


@pytest.mark.thorough
def test_a_mask_that_leaves_out_nothing_changes_nothing(tmp_path: Path) -> None:
    """To the last bit: the count that the ranks add up is the number that is known without one."""
    tokens = [one * one % 251 for one in range(1000)]
    plain = "1" * 1000
    written_documents(tmp_path / "plain", [(tokens, plain)], shard_tokens=1000)
    # The last tokens are those that no sequence has.
    written_documents(tmp_path / "masked", [(tokens, plain[:-1] + "0")], shard_tokens=1000)
    for name in ("plain", "masked"):
        root = tmp_path / f"run-{name}"
        options = _options(tmp_path, root, f"--data={tmp_path / name}", "--document_mask=false")
        assert in_world(2, _run, options) == [0, 0]
    assert _losses(tmp_path / "run-plain") == _losses(tmp_path / "run-masked")
