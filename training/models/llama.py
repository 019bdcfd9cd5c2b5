"""A decoder-only transformer of the Llama family: RMSNorm, rotary positions, SwiGLU, grouped queries."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from training.presets import ModelShape

ROPE_BASE = 10_000.0
NORM_EPSILON = 1e-5

Mask: TypeAlias = Tensor | BlockMask | None
"""What may attend to what; None: every token to those before it."""


def rotary_angles(length: int, head_width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines of shape (length, head_width / 2), in fp32 whatever the model's precision."""
    rates = ROPE_BASE ** (-torch.arange(0, head_width, 2, device=device).float() / head_width)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Turn each pair (i, i + half) of the last dimension by its position's angle; real-valued."""
    left, right = x.float().chunk(2, dim=-1)
    turned = torch.cat((left * cosines - right * sines, right * cosines + left * sines), dim=-1)
    return turned.type_as(x)


def positions_in(documents: Tensor) -> Tensor:
    """Of each token the place in its document; documents lie one after the other in each row."""
    places = torch.arange(documents.shape[1], device=documents.device).expand_as(documents)
    begins = documents != documents.roll(1, dims=1)
    begins[:, 0] = True
    return places - torch.where(begins, places, 0).cummax(dim=1).values


def mask_of(documents: Tensor) -> Mask:
    """A token sees those before it in its own document.

    On a GPU in blocks, for flex attention, which skips those that are empty; its backward pass does not run
    on a CPU, where the mask is written out.
    """
    length = documents.shape[1]
    if not documents.is_cuda:
        same = documents.unsqueeze(2) == documents.unsqueeze(1)
        return same.tril().unsqueeze(1)

    def sees(row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query >= key) & (documents[row, query] == documents[row, key])

    return create_block_mask(sees, documents.shape[0], None, length, length, device=documents.device)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask) -> Tensor:
    """Each of shape (batch, heads, length, width); queries may have more heads."""
    if isinstance(mask, BlockMask):
        return _flex()(query, key, value, block_mask=mask, enable_gqa=True)  # type: ignore[no-any-return]
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=mask is None, enable_gqa=True
    )


@cache
def _flex() -> Callable[..., Any]:
    """Compiled: else it would compute the whole matrix."""
    return torch.compile(flex_attention)


class Attention(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.head_width = shape.head_width
        self.query = nn.Linear(shape.width, shape.heads * shape.head_width, bias=False)
        self.key = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.value = nn.Linear(shape.width, shape.kv_heads * shape.head_width, bias=False)
        self.output = nn.Linear(shape.heads * shape.head_width, shape.width, bias=False)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor, mask: Mask = None) -> Tensor:
        query = rotate(self._heads(self.query(x)), cosines, sines)
        key = rotate(self._heads(self.key(x)), cosines, sines)
        value = self._heads(self.value(x))
        mixed = attend(query, key, value, mask)
        return self.output(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, length, heads * width) to (batch, heads, length, width)."""
        return x.view(*x.shape[:2], -1, self.head_width).transpose(1, 2)


class FeedForward(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.hidden, bias=False)
        self.up = nn.Linear(shape.width, shape.hidden, bias=False)
        self.output = nn.Linear(shape.hidden, shape.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(F.silu(self.gate(x)) * self.up(x))  # type: ignore[no-any-return]


class Block(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(shape.width, eps=NORM_EPSILON)
        self.attention = Attention(shape)
        self.feed_forward_norm = nn.RMSNorm(shape.width, eps=NORM_EPSILON)
        self.feed_forward = FeedForward(shape)

    def forward(self, x: Tensor, cosines: Tensor, sines: Tensor, mask: Mask = None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cosines, sines, mask)
        return x + self.feed_forward(self.feed_forward_norm(x))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        # A dictionary, not a list: names stay when a part of the blocks is taken out.
        self.blocks = nn.ModuleDict({str(layer): Block(shape) for layer in range(shape.layers)})
        self.norm = nn.RMSNorm(shape.width, eps=NORM_EPSILON)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(self, tokens: Tensor, documents: Tensor | None = None) -> Tensor:
        """Logits of shape (batch, length, vocabulary).

        With ``documents``, a number for each token, attention stays inside a document and positions begin
        anew in each.
        """
        cosines, sines = rotary_angles(tokens.shape[1], self.shape.head_width, tokens.device)
        mask: Mask = None
        if documents is not None:
            positions = positions_in(documents)
            cosines, sines = cosines[positions].unsqueeze(1), sines[positions].unsqueeze(1)
            mask = mask_of(documents)
        x = self.embedding(tokens)
        for block in self.blocks.values():
            x = block(x, cosines, sines, mask)
        return self.head(self.norm(x))  # type: ignore[no-any-return]


def flops_per_token(shape: ModelShape) -> int:
    """Of a training step, forward and backward: 6 per weight of a matrix, and 12 per layer for attention.

    As PaLM counts (arXiv 2204.02311, appendix B): no discount for the causal mask, embeddings are free, and
    what activation checkpointing computes twice counts once.
    """
    attention = 2 * shape.width * shape.head_width * (shape.heads + shape.kv_heads)
    feed_forward = 3 * shape.width * shape.hidden
    weights = shape.layers * (attention + feed_forward) + shape.width * shape.vocabulary
    mixing = shape.layers * shape.heads * shape.head_width * shape.sequence_length
    return 6 * weights + 12 * mixing
