from itertools import pairwise

import torch

from training.config.decoder_shape import ModelShape
from training.models.init import initialise
from training.models.transformer import Transformer, positions_in

_SHAPE = ModelShape(layers=2, width=32, heads=4, kv_heads=2, hidden=64, vocabulary=50, sequence_length=16)


def _model() -> Transformer:
    model = Transformer(_SHAPE)
    initialise(model, seed=1, layers=_SHAPE.layers)
    with torch.no_grad():
        for one in model.parameters():
            one.add_(0.3 * torch.randn(one.shape, generator=torch.Generator().manual_seed(one.numel())))
    return model


def test_positions_begin_anew_in_each_document() -> None:
    documents = torch.tensor([[0, 0, 0, 1, 2, 2], [4, 5, 5, 5, 5, 6]])
    assert positions_in(documents).tolist() == [[0, 1, 2, 0, 0, 1], [0, 0, 1, 2, 3, 0]]


def test_a_packed_document_computes_what_it_would_alone() -> None:
    model, tokens = _model(), torch.arange(32).reshape(2, 16)
    documents = torch.tensor([[0] * 5 + [1] * 11, [0] * 9 + [1] + [2] * 6])
    packed = model(tokens, documents)
    for row, ends in enumerate([(0, 5, 16), (0, 9, 10, 16)]):
        for first, last in pairwise(ends):
            alone = model(tokens[row : row + 1, first:last])
            torch.testing.assert_close(packed[row : row + 1, first:last], alone, rtol=0, atol=1e-5)
    assert (packed - model(tokens)).abs().max() > 1e-2  # without the argument they do see each other


def test_nothing_of_a_document_reaches_the_gradients_of_another() -> None:
    model, tokens = _model(), torch.arange(16).reshape(1, 16)
    documents = torch.tensor([[0] * 7 + [1] * 9])
    model(tokens, documents)[:, :7].sum().backward()
    touched = model.embedding.weight.grad
    assert touched is not None
    assert touched.abs().sum(dim=1).nonzero().flatten().tolist() == list(range(7))
