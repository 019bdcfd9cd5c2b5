"""A loss whose logits are never whole, against one whose logits are."""

import pytest
import torch
from torch import nn

from training.config import TrainConfig
from training.data.batches import IGNORED
from training.models.loss import Chunks, Head, token_terms

_VOCABULARY, _WIDTH, _TOKENS = 50, 16, 24


def _gradients(config: TrainConfig, chunk: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The terms of each token, and the gradients of the head and of what goes into it."""
    torch.manual_seed(3)
    head = Head(_WIDTH, _VOCABULARY, bias=False)
    hidden = torch.randn(2, _TOKENS // 2, _WIDTH, requires_grad=True)
    targets = torch.randint(_VOCABULARY, (2, _TOKENS // 2))
    targets[0, :3] = IGNORED
    terms = token_terms(config)
    if chunk:
        found = head(hidden, Chunks(tokens=chunk, targets=targets, terms=terms))
    else:
        found = terms(head(hidden).flatten(0, 1), targets.flatten())
    (found.sum(dim=0) @ torch.tensor([1.0, config.z_loss])[: found.shape[1]]).backward()
    assert head.weight.grad is not None
    assert hidden.grad is not None
    return found.detach(), head.weight.grad, hidden.grad


@pytest.mark.parametrize("z_loss", [0.0, 0.01])
@pytest.mark.parametrize("chunk", [1, 7, 24, 100])
def test_chunks_change_no_loss_and_no_gradient(chunk: int, z_loss: float) -> None:
    config = TrainConfig(z_loss=z_loss, loss_chunk=chunk)
    for ours, whole in zip(_gradients(config, chunk), _gradients(config, 0), strict=True):
        torch.testing.assert_close(ours, whole, atol=1e-6, rtol=1e-6)


def test_there_never_are_the_logits_of_more_tokens_than_a_chunk_has(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    linear = nn.functional.linear

    def watched(some: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        seen.append(some.shape[0])
        return linear(some, weight)

    monkeypatch.setattr("training.models.loss.F.linear", watched)
    _gradients(TrainConfig(loss_chunk=7), 7)
    assert sorted(seen) == sorted([7, 7, 7, 3] * 2)  # forward, and again in the backward pass


def test_what_is_ignored_has_no_terms() -> None:
    terms, _, hidden_gradient = _gradients(TrainConfig(z_loss=0.01, loss_chunk=5), 5)
    assert terms[:3].tolist() == [[0.0, 0.0]] * 3
    assert hidden_gradient[0, :3].abs().max() == 0
