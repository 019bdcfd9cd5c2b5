"""What is minimised, token by token; and how it is had without the logits of all tokens at once."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from training.choices import Compile
from training.config import TrainConfig
from training.data.batches import IGNORED

TokenTerms = Callable[[Tensor, Tensor], Tensor]
"""Of logits (tokens, vocabulary) and targets (tokens): fp32 of shape (tokens, 1 or 2)."""


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    losses = F.cross_entropy(logits.float(), targets, reduction="none", ignore_index=IGNORED)
    return losses.unsqueeze(1)


def with_z_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Also the squared log of the softmax's sum, which keeps logits from drifting away (PaLM, section 5)."""
    logits = logits.float()
    squares = logits.logsumexp(-1).square() * (targets != IGNORED)
    return torch.cat((cross_entropy(logits, targets), squares.unsqueeze(1)), dim=1)


def token_terms(config: TrainConfig) -> TokenTerms:
    """Compiled where blocks are and logits come in chunks: the fp32 copy of a chunk then is never written."""
    terms = with_z_loss if config.z_loss else cross_entropy
    if config.loss_chunk and config.compile is not Compile.NONE:
        return torch.compile(terms, backend=config.compile.value)
    return terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """How a head that is given this gets from its inputs to the terms of each token."""

    tokens: int
    """At a time; the logits of one chunk are all that there ever is, in the backward pass as well."""
    targets: Tensor
    terms: TokenTerms


class Head(nn.Linear):
    """Logits; or with ``chunks`` the terms of the loss, of shape (tokens, 1 or 2).

    Inside of one call, as FSDP gathers the weights for a call. Each chunk adds its share to the weights'
    gradient in their own precision.
    """

    def forward(self, hidden: Tensor, chunks: Chunks | None = None) -> Tensor:
        if chunks is None:
            return super().forward(hidden)

        def terms(some: Tensor, targets: Tensor) -> Tensor:
            return chunks.terms(F.linear(some, self.weight), targets)

        flat = (hidden.flatten(0, 1), chunks.targets.flatten())
        parts = zip(*(torch.split(one, chunks.tokens) for one in flat), strict=True)
        return torch.cat(
            [checkpoint(terms, *part, use_reentrant=False, preserve_rng_state=False) for part in parts]
        )
