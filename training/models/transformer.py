"""A decoder-only transformer of the Llama family: RMSNorm, rotary positions, SwiGLU, grouped queries.

One plain module serves Llama, Mistral, Qwen2 and Qwen3: they differ only in the shape. Its blocks are those
of vision transformers, too (`vision/vit.py`). It knows nothing of ranks, sharding or compiling; `parallel`
adds these from the outside.
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from training.config.decoder_shape import Lora, ModelShape, Norm, Rope, RopeKind
from training.config.vision_shape import Shape, VisionShape
from training.models.loss import Chunks, Head

Mask: TypeAlias = Tensor | BlockMask | None
"""Mask of attention: the tokens that each token may attend to; None: itself and all before it."""


def rotary_angles(shape: ModelShape, length: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of shape (length, head_width / 2), in fp32 whatever the model's precision."""
    rates = rotary_rates(shape.rope, shape.head_width, length, device)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    factor = shape.rope.attention_factor
    return angles.cos() * factor, angles.sin() * factor


def rotary_rates(rope: Rope, head_width: int, length: int, device: torch.device) -> Tensor:
    """Return the radians per position of each pair of a head.

    Sources: Su et al., RoFormer, arXiv 2104.09864; Peng et al., YaRN, arXiv 2309.00071 (dynamic and yarn);
    llama3 as in transformers, modeling_rope_utils.py.
    """
    pairs = torch.arange(0, head_width, 2, device=device).float()
    theta = rope.theta
    if rope.kind is RopeKind.DYNAMIC and length > rope.original_positions:
        longer = rope.factor * length / rope.original_positions - (rope.factor - 1)
        theta *= longer ** (head_width / (head_width - 2))
    rates = theta ** (-pairs / head_width)
    match rope.kind:
        case RopeKind.LINEAR:
            return rates / rope.factor
        case RopeKind.LLAMA3:
            turns = rope.original_positions * rates / (2 * math.pi)  # over the original length
            kept = (turns - rope.low_frequency) / (rope.high_frequency - rope.low_frequency)
            return _mixed(rates, kept.clamp(0, 1), rope.factor)
        case RopeKind.YARN:
            first, last = (_turning(rope, head_width, beta) for beta in (rope.beta_fast, rope.beta_slow))
            if rope.truncate:
                first, last = math.floor(first), math.ceil(last)
            first, last = max(first, 0), min(last, head_width - 1)
            ramp = (pairs / 2 - first) / (last - first or 0.001)
            return _mixed(rates, 1 - ramp.clamp(0, 1), rope.factor)
        case RopeKind.DEFAULT | RopeKind.DYNAMIC:
            return rates


def _mixed(rates: Tensor, kept: Tensor, factor: float) -> Tensor:
    """Slow each rate by ``factor`` as far as ``kept``, from 0 to 1, does not keep it."""
    return rates / factor * (1 - kept) + rates * kept


def _turning(rope: Rope, head_width: int, turns: float) -> float:
    """Return the pair, as a number with a fraction, that turns this many times over the original length."""
    wavelength = rope.original_positions / (turns * 2 * math.pi)
    return head_width * math.log(wavelength) / (2 * math.log(rope.theta))


def rotate(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """Rotate each pair (i, i + half) of the last dimension by its position's angle; all numbers are real."""
    left, right = x.float().chunk(2, dim=-1)
    turned = torch.cat((left * cosines - right * sines, right * cosines + left * sines), dim=-1)
    return turned.type_as(x)


def positions_in(documents: Tensor) -> Tensor:
    """Return each token's position in its document; documents follow each other in each row."""
    places = torch.arange(documents.shape[1], device=documents.device).expand_as(documents)
    begins = documents != documents.roll(1, dims=1)
    begins[:, 0] = True
    return places - torch.where(begins, places, 0).cummax(dim=1).values


def mask_of(tokens: Tensor, documents: Tensor | None, *, window: int = 0) -> Mask:
    """Let each token see itself and those before it in its document, and at most ``window`` of them.

    On a GPU the mask is made of blocks, for flex attention, which skips empty ones; its backward pass does
    not run on a CPU, where the mask is written out.
    """
    length = tokens.shape[1]
    window = window if 0 < window < length else 0
    if documents is None:
        return _window_mask(length, window, tokens.device) if window else None
    if documents.is_cuda:

        def sees(row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            same = (query >= key) & (documents[row, query] == documents[row, key])
            return same & (query - key < window) if window else same

        return create_block_mask(sees, documents.shape[0], None, length, length, device=documents.device)
    same = (documents.unsqueeze(2) == documents.unsqueeze(1)).tril()
    return (same.triu(1 - window) if window else same).unsqueeze(1)


@cache
def _window_mask(length: int, window: int, device: torch.device) -> Tensor | BlockMask:
    """Return the mask of a window, which is the same at every step."""
    if device.type != "cuda":
        return torch.ones(length, length, dtype=torch.bool, device=device).tril().triu(1 - window)

    def sees(_row: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (query >= key) & (query - key < window)

    return create_block_mask(sees, None, None, length, length, device=device)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Mask, *, is_causal: bool = True) -> Tensor:
    """Mix values by attention. Tensors are (batch, heads, length, width); queries may have more heads."""
    if isinstance(mask, BlockMask):
        return _flex()(query, key, value, block_mask=mask, enable_gqa=True)  # type: ignore[no-any-return]  # a module's call has no type
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask, is_causal=is_causal and mask is None, enable_gqa=True
    )


@cache
def _flex() -> Callable[..., Any]:
    """Compile flex attention; else it would compute the whole matrix."""
    return torch.compile(flex_attention)


def norm_of(shape: Shape, width: int) -> nn.Module:
    if shape.norm is Norm.RMS:
        return nn.RMSNorm(width, eps=shape.norm_epsilon)
    return nn.LayerNorm(width, eps=shape.norm_epsilon, bias=shape.norm_bias)


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.head_width, self.is_causal = shape.head_width, shape.is_causal
        ours, shared = shape.heads * shape.head_width, shape.kv_heads * shape.head_width
        self.query = nn.Linear(shape.width, ours, bias=shape.qkv_bias)
        self.key = nn.Linear(shape.width, shared, bias=shape.qkv_bias)
        self.value = nn.Linear(shape.width, shared, bias=shape.qkv_bias)
        self.output = nn.Linear(ours, shape.width, bias=shape.output_bias)
        if shape.head_norms:
            self.query_norm = norm_of(shape, shape.head_width)
            self.key_norm = norm_of(shape, shape.head_width)
        else:
            self.query_norm, self.key_norm = nn.Identity(), nn.Identity()

    def forward(
        self, x: Tensor, cosines: Tensor | None = None, sines: Tensor | None = None, mask: Mask = None
    ) -> Tensor:
        """Mix the tokens; without cosines and sines, positions must be part of ``x``."""
        query = self.query_norm(self._heads(self.query(x)))
        key = self.key_norm(self._heads(self.key(x)))
        if cosines is not None and sines is not None:
            query, key = rotate(query, cosines, sines), rotate(key, cosines, sines)
        value = self._heads(self.value(x))
        mixed = attend(query, key, value, mask, is_causal=self.is_causal)
        return self.output(mixed.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]  # a module's call has no type

    def _heads(self, x: Tensor) -> Tensor:
        """Reshape (batch, length, heads * width) to (batch, heads, length, width)."""
        return x.view(*x.shape[:2], -1, self.head_width).transpose(1, 2)


class FeedForward(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate = (
            nn.Linear(shape.width, shape.hidden, bias=shape.feed_forward_bias) if shape.is_gated else None
        )
        self.up = nn.Linear(shape.width, shape.hidden, bias=shape.feed_forward_bias)
        self.output = nn.Linear(shape.hidden, shape.width, bias=shape.feed_forward_bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.gate is None:
            return self.output(F.gelu(self.up(x)))  # type: ignore[no-any-return]  # a module's call has no type
        return self.output(F.silu(self.gate(x)) * self.up(x))  # type: ignore[no-any-return]  # a module's call has no type


class Block(nn.Module):
    """Block of any family; families differ only in the shape."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention_norm = norm_of(shape, shape.width)
        self.attention = Attention(shape)
        self.feed_forward_norm = None if shape.is_parallel else norm_of(shape, shape.width)
        self.feed_forward = FeedForward(shape)

    def forward(
        self, x: Tensor, cosines: Tensor | None = None, sines: Tensor | None = None, mask: Mask = None
    ) -> Tensor:
        normed = self.attention_norm(x)
        attended = self.attention(normed, cosines, sines, mask)
        if self.feed_forward_norm is None:
            return x + attended + self.feed_forward(normed)  # type: ignore[no-any-return]  # a module's call has no type
        x = x + attended
        return x + self.feed_forward(self.feed_forward_norm(x))  # type: ignore[no-any-return]  # a module's call has no type


class Backbone(nn.Module):
    """Model of any family, by the parts that sharding, loading and the loop need."""

    shape: Shape
    embedding: nn.Module
    blocks: nn.ModuleDict
    norm: nn.Module
    head: nn.Module


class Transformer(Backbone):
    shape: ModelShape
    embedding: nn.Embedding
    norm: nn.RMSNorm
    head: Head

    def __init__(self, shape: ModelShape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        # A dictionary, not a list: names stay when a part of the blocks is taken out.
        self.blocks = nn.ModuleDict({str(layer): Block(shape) for layer in range(shape.layers)})
        self.norm = nn.RMSNorm(shape.width, eps=shape.norm_epsilon)
        self.head = Head(shape.width, shape.vocabulary, bias=False)
        self.tie()

    def tie(self) -> None:
        """Share weights of embedding and head if the shape says so; repeat it if parameters were replaced."""
        if self.shape.tied_head:
            self.head.weight = self.embedding.weight

    def forward(
        self, tokens: Tensor, documents: Tensor | None = None, chunks: Chunks | None = None
    ) -> Tensor:
        """Return logits of shape (batch, length, vocabulary); with ``chunks`` the terms of each token's loss.

        With ``documents``, a number for each token, attention stays inside a document and positions start at
        0 in each.
        """
        cosines, sines = rotary_angles(self.shape, tokens.shape[1], tokens.device)
        if documents is not None:
            positions = positions_in(documents)
            cosines, sines = cosines[positions].unsqueeze(1), sines[positions].unsqueeze(1)
        windows = {self.shape.window_of(int(layer)) for layer in self.blocks}
        masks = {window: mask_of(tokens, documents, window=window) for window in windows}
        x = self.embedding(tokens)
        for layer, block in self.blocks.items():
            x = block(x, cosines, sines, masks[self.shape.window_of(int(layer))])
        return self.head(self.norm(x), chunks=chunks)  # type: ignore[no-any-return]  # a module's call has no type


def flops_per_token(shape: Shape, lora: Lora | None = None) -> int:
    """Count a training step's operations for a token: 6 per weight of a matrix, 12 per layer for attention.

    The count is PaLM's (arXiv 2204.02311, appendix B): no discount for the causal mask, embeddings are free,
    and operations that activation checkpointing repeats count once. A head that is the embedding multiplies
    like any other; a window counts as if all of it were seen. A weight beside which adapters are trained
    counts 4, as its gradient is not computed.
    """
    if isinstance(shape, VisionShape):
        return shape.flops_per_token
    matrices = {name: rows * columns for name, (rows, columns) in shape.matrices.items()}
    weights = shape.layers * sum(matrices.values()) + shape.width * shape.vocabulary
    lengths = (shape.window_of(layer) or shape.sequence_length for layer in range(shape.layers))
    seen = sum(min(length, shape.sequence_length) for length in lengths)
    mixing = 12 * shape.heads * shape.head_width * seen
    if lora is None:
        return 6 * weights + mixing
    adapters = sum(lora.rank * sum(shape.matrices[name]) for name in lora.targets)
    return 4 * weights + 6 * shape.layers * adapters + mixing
