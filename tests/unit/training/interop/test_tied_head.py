"""A model whose head is its embedding, and files that say otherwise: nothing is dropped without a word."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from training.config.decoder_layout import EMBEDDING, HEAD, config_of, hf_name
from training.config.decoder_shape import ModelShape
from training.errors import WeightsError
from training.interop.importing import load_weights
from training.models.init import initialise
from training.models.transformer import Transformer

SHAPE = ModelShape(
    layers=1, width=32, heads=4, kv_heads=2, hidden=64, vocabulary=50, sequence_length=16, tied_head=True
)


def _model(seed: int) -> Transformer:
    model = Transformer(SHAPE)
    initialise(model, seed=seed, layers=SHAPE.layers)
    return model


def _files() -> dict[str, Tensor]:
    named = {hf_name(name): value.clone() for name, value in _model(1).state_dict().items()}
    named.pop(HEAD, None)
    return named


def _loaded(folder: Path, files: dict[str, Tensor]) -> Transformer:
    save_file(files, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config_of(SHAPE, dtype="float32")))
    load_weights(model := _model(2), str(folder), {})
    return model


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_C39_a_copy_of_the_embedding_is_no_other_head(tmp_path: Path, kind: torch.dtype) -> None:
    files = _files()
    model = _loaded(tmp_path, {**files, HEAD: files[EMBEDDING].clone().to(kind)})
    assert torch.equal(model.head.weight, files[EMBEDDING])


@pytest.mark.parametrize("place", [(0, 0), (49, 31)])
def test_S9_another_head_is_refused_in_words(tmp_path: Path, place: tuple[int, int]) -> None:
    head = (files := _files())[EMBEDDING].clone()
    head[place] += 1e-3
    with pytest.raises(
        WeightsError, match=r"lm_head.weight that is not model.embed_tokens.weight.* set it to false"
    ):
        _loaded(tmp_path, {**files, HEAD: head})


def test_S9_a_head_of_another_size_is_refused(tmp_path: Path) -> None:
    files = _files()
    with pytest.raises(WeightsError, match=r"lm_head.weight that is not model.embed_tokens.weight"):
        _loaded(tmp_path, {**files, HEAD: files[EMBEDDING][:40].clone()})


def test_C39_where_only_the_head_is_there_it_is_the_embedding_too(tmp_path: Path) -> None:
    files = _files()
    files[HEAD] = files.pop(EMBEDDING)
    model = _loaded(tmp_path, files)
    assert torch.equal(model.embedding.weight, files[HEAD])
    assert model.head.weight is model.embedding.weight


def test_S9_tensors_that_are_left_out_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _loaded(tmp_path, {**_files(), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4)})
    assert (
        "1 tensors of it are not read (model.layers.0.self_attn.rotary_emb.inv_freq)"
        in capsys.readouterr().out
    )


def test_S9_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    files = _files()
    for name in ("a", "b"):
        save_file(files, tmp_path / f"{name}.safetensors")
    where = {EMBEDDING: "a.safetensors", "model.norm.weight": "b.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    with pytest.raises(WeightsError, match="in more than one file; remove what is left of an older model"):
        load_weights(_model(2), str(tmp_path), {})


def test_S9_two_models_in_one_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {}}')
    with pytest.raises(
        WeightsError, match=r"model.safetensors and model.safetensors.index.json, which are two"
    ):
        _loaded(tmp_path, _files())


@pytest.mark.parametrize("index", ["{", "[]", "{}", '{"weight_map": ["a"]}', '{"weight_map": {"a": 1}}'])
def test_C39_an_index_that_is_none_is_refused_in_words(tmp_path: Path, index: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(WeightsError, match="is no index of weights, which has the file of each tensor"):
        load_weights(_model(2), str(tmp_path), {})
