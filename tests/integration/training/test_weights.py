"""The whole weights as safetensors: written and read by two ranks, loaded by others."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from tests.integration.training.worlds import in_world
from training.config.decoder_layout import hf_name
from training.config.decoder_shape import PRESETS
from training.errors import WeightsError
from training.interop import importing
from training.interop.exporting import export_weights
from training.interop.importing import load_weights
from training.interop.tensor_file import Entry, read_part
from training.models.init import initialise
from training.models.transformer import Transformer
from training.ranks.world import World

_TINY = PRESETS["tiny"]
_TOKENS = torch.arange(48).reshape(2, 24) % _TINY.vocabulary


def _sharded(seed: int) -> Transformer:
    with torch.device("meta"):
        model = Transformer(_TINY)
    for part in (*model.blocks.values(), model):
        fully_shard(part)
    model.to_empty(device="cpu")
    initialise(model, seed=seed, layers=_TINY.layers)
    return model


def _whole(model: Transformer) -> dict[str, Tensor]:
    """By our names, of every rank."""
    weights = {}
    for name, one in model.named_parameters():
        value = one.full_tensor() if isinstance(one, DTensor) else one
        weights[name] = value.detach().clone()
    return weights


def _plain(weights: dict[str, Tensor]) -> Transformer:
    model = Transformer(_TINY)
    model.load_state_dict(weights)
    return model


def _exported_by(world: World, directory: Path) -> dict[str, Tensor]:
    """Twice: first in many files, which the one file then replaces in a directory of its own."""
    model = _sharded(5)
    export_weights(model, directory / "many", _TINY, file_bytes=400_000)
    export_weights(model, directory / "one", _TINY, file_bytes=400_000)
    export_weights(model, directory / "one", _TINY)
    return _whole(model)


def _loaded_by(world: World, directory: Path) -> tuple[list[dict[str, Tensor]], int]:
    """From the many files and the one; and how many bytes this rank read of the latter."""
    models = [_sharded(6) for _ in range(2)]
    load_weights(models[0], str(directory / "many"), {})
    numbers = []

    def counted(file, entry: Entry, **box) -> Tensor:
        numbers.append(part := read_part(file, entry, **box))
        return part

    vars(importing)["read_part"] = counted
    load_weights(models[1], "channel:weights", {"SM_CHANNEL_WEIGHTS": str(directory / "one")})
    return [_whole(model) for model in models], sum(part.nbytes for part in numbers)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Tensor]]:
    directory = tmp_path_factory.mktemp("exported")
    weights = in_world(2, _exported_by, directory)[0]
    return directory, weights


def test_T14_the_whole_weights_load_in_a_plain_module_with_equal_logits(exported) -> None:
    directory, weights = exported
    assert sorted(path.name for path in (directory / "one").iterdir()) == ["config.json", "model.safetensors"]
    found = load_file(directory / "one/model.safetensors")
    plain = _plain({name: found[hf_name(name)] for name in weights})
    assert len(found) == len(weights) == 39
    with torch.no_grad():
        assert torch.equal(plain(_TOKENS), _plain(weights)(_TOKENS))


def test_T14_many_files_hold_the_same_tensors_and_their_index_says_where(exported) -> None:
    directory, weights = exported
    index = json.loads((directory / "many/model.safetensors.index.json").read_bytes())
    assert index["metadata"] == {"total_size": 803_968 * 4}
    files = sorted(path.name for path in (directory / "many").glob("*.safetensors"))
    assert len(files) >= 8
    assert files[0] == f"model-00001-of-{len(files):05d}.safetensors"
    assert set(index["weight_map"].values()) == set(files)
    for name, value in weights.items():
        file = load_file(directory / "many" / index["weight_map"][hf_name(name)])
        assert torch.equal(file[hf_name(name)], value)


def test_T14_two_ranks_load_them_again_each_its_own_part(exported) -> None:
    directory, weights = exported
    for loaded, read in in_world(2, _loaded_by, directory):
        for one in loaded:
            assert all(torch.equal(one[name], value) for name, value in weights.items())
        assert read == 803_968 * 4 / 2


@pytest.mark.thorough
def test_T14_transformers_computes_the_same_logits(exported) -> None:
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  takes seconds

    directory, weights = exported
    for place in ("one", "many"):
        theirs = AutoModelForCausalLM.from_pretrained(directory / place)
        with torch.no_grad():
            assert torch.allclose(theirs(_TOKENS).logits, _plain(weights)(_TOKENS), atol=1e-5)


def _model() -> Transformer:
    return Transformer(_TINY)


def test_a_plain_model_leaves_and_takes_bf16_as_it_is(tmp_path: Path) -> None:
    model, other = _model().bfloat16(), _model().bfloat16()
    export_weights(model, tmp_path, _TINY)
    assert json.loads((tmp_path / "config.json").read_bytes())["torch_dtype"] == "bfloat16"
    load_weights(other, str(tmp_path), {})
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in model.state_dict().items())
    whole = _model()
    load_weights(whole, str(tmp_path), {})
    assert torch.equal(whole.norm.weight, model.norm.weight.float())


def _files_of(model: Transformer) -> dict[str, Tensor]:
    return {hf_name(name): value.clone() for name, value in model.state_dict().items()}


def test_the_table_of_rotary_positions_in_old_checkpoints_is_not_a_weight(tmp_path: Path) -> None:
    files = _files_of(model := _model())
    files["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(16)
    save_file(files, tmp_path / "model.safetensors")
    load_weights(other := _model(), str(tmp_path), {})
    assert torch.equal(other.head.weight, model.head.weight)


def _refused(directory: Path) -> str:
    model = _model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(WeightsError) as refused:
        load_weights(model, str(directory), {})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    return str(refused.value)


def test_all_that_does_not_fit_is_said_at_once_and_nothing_is_loaded(tmp_path: Path) -> None:
    files = _files_of(_model())
    for layer in range(4):
        del files[f"model.layers.{layer}.self_attn.q_proj.weight"]
    files["model.layers.0.self_attn.q_proj.bias"] = torch.ones(128)
    files["lm_head.weight"] = torch.ones(300, 128)
    save_file(files, tmp_path / "model.safetensors")
    assert _refused(tmp_path) == (
        f"the weights in {tmp_path} do not fit the model: 4 missing "
        "(model.layers.0.self_attn.q_proj.weight, model.layers.1.self_attn.q_proj.weight, "
        "model.layers.2.self_attn.q_proj.weight, ...); "
        "1 unexpected (model.layers.0.self_attn.q_proj.bias); "
        "1 of another shape (lm_head.weight (300, 128), not (256, 128))"
    )


def test_weights_of_equal_shapes_but_other_heads_are_refused(tmp_path: Path) -> None:
    export_weights(_model(), tmp_path, _TINY)
    config = json.loads((tmp_path / "config.json").read_bytes())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_attention_heads": 8}))
    assert _refused(tmp_path) == (
        f"the weights in {tmp_path} are of another model: num_attention_heads is 8, the model has 4; "
        "to train that one, set model_config to it"
    )


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    export_weights(_model(), tmp_path, _TINY)
    path = tmp_path / "model.safetensors"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - 1)
    assert _refused(tmp_path) == f"{path} has {size - 1} bytes of {size}: copy it again"
    path.write_bytes(b"\x20\x00")
    assert _refused(tmp_path) == f"{path} is not a safetensors file, or cut short"
    path.unlink()
    assert _refused(tmp_path).startswith(f"{tmp_path} has neither model.safetensors nor")


def test_weights_that_are_no_plain_numbers_are_refused(tmp_path: Path) -> None:
    save_file({"lm_head.weight": torch.ones(2, dtype=torch.int8)}, tmp_path / "model.safetensors")
    assert _refused(tmp_path).endswith("lm_head.weight is I8; only F64, F32, F16, BF16 are read")


def test_a_volume_too_small_is_said_before_anything_is_written(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 2_000_000}))
    with pytest.raises(WeightsError, match=r"need 0\.0 GB in .*, 0\.0 GB are free: give the job a larger"):
        export_weights(_model(), tmp_path, _TINY)
    assert list(tmp_path.iterdir()) == []


def _failing_first_rank(world: World, directory: Path) -> str:
    """The model's directory is a file: only the first rank finds out."""
    model = _sharded(5)
    try:
        export_weights(model, directory / "file", _TINY)
    except WeightsError as error:
        return str(error)
    return ""


def test_when_the_first_rank_cannot_write_all_ranks_say_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    messages = in_world(2, _failing_first_rank, tmp_path)
    assert messages[0] == messages[1] != ""
    assert messages[0].startswith(f"cannot write the weights to {tmp_path / 'file'}: ")
