"""Which matrices are multiplied in float8, and who is refused. What becomes of a training: on ranks."""

import logging
import sys

import pytest
import torch
from trainmaster.core.memory import training_runs

from training.config import TrainConfig, read_config
from training.config.choices import Precision
from training.config.decoder_shape import PRESETS
from training.errors import ConfigError, MissingPackageError, UnsupportedDeviceError
from training.models.float8 import _without_noise, chosen, convert, gathers_float8, refuse_device
from training.models.transformer import Transformer
from training.ranks.world import World

_CPU, _GPU = torch.device("cpu"), torch.device("cuda", 0)
_WORLD = World(rank=0, size=2, local_rank=0, ranks_per_host=2, device=_CPU)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("float8", Precision.FLOAT8),
        ("float8-emulated", Precision.FLOAT8_EMULATED),
        ("float8_emulated", Precision.FLOAT8_EMULATED),
        ("float8-rowwise", Precision.FLOAT8_ROWWISE),
        ("bf16-pure", Precision.BF16_PURE),
    ],
)
def test_a_precision_may_be_spelled_with_dashes_here_and_in_the_plane(text: str, meant: Precision) -> None:
    assert read_config(["--precision", text], {}).precision is meant
    run = training_runs.run_of({"preset": "tiny", "precision": text})
    assert run is not None
    assert run.precision.value == meant.value


_TENSOR, _ROW, _EMULATED = Precision.FLOAT8, Precision.FLOAT8_ROWWISE, Precision.FLOAT8_EMULATED


@pytest.mark.parametrize(
    ("precision", "shape", "reason"),
    [
        pytest.param(_TENSOR, (2048, 2048), None, id="a square of 2048 gains"),
        pytest.param(_TENSOR, (1024, 4096), "are too small to gain", id="few rows of 4096 gain nothing"),
        pytest.param(_TENSOR, (1024, 4112), None, id="few wide rows gain"),
        pytest.param(_TENSOR, (1040, 128), None, id="many short rows gain"),
        pytest.param(_TENSOR, (4096, 4100), "do not divide by 16", id="columns do not divide"),
        pytest.param(_TENSOR, (4100, 4096), "do not divide by 16", id="rows do not divide"),
        pytest.param(_ROW, (2048, 8192), "are too small to gain", id="2048 rows gain nothing by row"),
        pytest.param(_ROW, (8192, 1024), "are too small to gain", id="1024 columns gain nothing by row"),
        pytest.param(_ROW, (4096, 2048), "are too small to gain", id="4096 x 2048 gains nothing by row"),
        pytest.param(_ROW, (4096, 2064), None, id="4096 x 2064 gains by row"),
        pytest.param(_EMULATED, (16, 16), None, id="what is emulated may be of any size"),
        pytest.param(_EMULATED, (16, 24), "do not divide by 16", id="and is refused where hardware would"),
    ],
)
def test_a_matrix_is_taken_or_left_with_the_reason(
    precision: Precision, shape: tuple[int, int], reason: str | None
) -> None:
    choice = chosen({"one": shape}, precision)
    if reason is None:
        assert choice.taken == {"one"}
        assert not choice.left
    else:
        assert not choice.taken
        assert choice.left == {f"of {shape[0]} x {shape[1]} {reason}": 1}


def test_the_rule_is_torchaos_own() -> None:
    from torchao.float8.float8_linear_utils import _auto_filter_for_recipe  # noqa: PLC0415  an extra, and slow

    sides = [16, 24, 1024, 1040, 2048, 2064, 4096, 4112]
    shapes = {f"{rows} x {columns}": (rows, columns) for rows in sides for columns in sides}
    with torch.device("meta"):
        layers = {name: torch.nn.Linear(columns, rows) for name, (rows, columns) in shapes.items()}
    for precision, recipe in ((_TENSOR, "tensorwise"), (_ROW, "rowwise")):
        gains = _auto_filter_for_recipe(recipe, filter_fqns=[])
        assert chosen(shapes, precision).taken == {name for name, one in layers.items() if gains(one, name)}


def test_a_gpu_without_float8_is_refused_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA A100")
    for capability in ((8, 9), (9, 0), (10, 0)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, found=capability: found)
        refuse_device(_ROW, _GPU)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (8, 0))
    refuse_device(_EMULATED, _GPU)
    with pytest.raises(UnsupportedDeviceError, match=r"8\.9 or above.*NVIDIA A100 has 8\.0: set precision"):
        refuse_device(_ROW, _GPU)


def test_a_cpu_is_refused_but_for_emulation() -> None:
    refuse_device(Precision.FLOAT8_ROWWISE_EMULATED, _CPU)
    with pytest.raises(UnsupportedDeviceError, match="is a cpu: set precision bf16, or float8_emulated"):
        refuse_device(_TENSOR, _CPU)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param(
            ["--batch_size=2", "--sequence_length=24"],
            "needs tokens that divide by 16, and a rank has 24 at once",
            id="the tokens of a rank",
        ),
        pytest.param(
            ["--batch_size=8", "--sequence_length=8", "--gradient_accumulation_steps=4"],
            "a rank has 8 at once: change batch_size",
            id="the tokens of a part",
        ),
    ],
)
def test_tokens_that_do_not_divide_are_refused(options: list[str], problem: str) -> None:
    config = read_config(["--precision=float8-emulated", *options], {})
    with torch.device("meta"):
        model = Transformer(config.text_shape)
    with pytest.raises(ConfigError, match=problem):
        convert(model, config, _WORLD)


def test_a_model_in_which_nothing_gains_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.models.float8.refuse_device", lambda *_: None)  # as if here were a GPU
    config = TrainConfig(preset="tiny", precision=_TENSOR)
    with torch.device("meta"):
        model = Transformer(PRESETS["tiny"])
    with pytest.raises(
        ConfigError, match="would change nothing: matrices of 128 x 128 are too small to gain"
    ):
        convert(model, config, _WORLD)


def test_adapters_are_refused() -> None:
    given = ["--precision=float8", "--lora_rank=4", "--init_from=somewhere"]
    with pytest.raises(ConfigError, match="precision float8 does not go with lora_rank"):
        read_config(given, {})


@pytest.mark.parametrize(
    "options",
    [
        ["--precision=bf16"],
        ["--precision=float8-rowwise"],
        ["--precision=float8", "--strategy=no_shard"],
        ["--precision=float8", "--cpu_offload=true"],
        ["--precision=float8", "--float8_all_gather=false"],
    ],
)
def test_weights_are_gathered_in_float8_where_that_works(options: list[str]) -> None:
    assert gathers_float8(read_config(["--precision=float8"], {}))
    assert not gathers_float8(read_config(options, {}))


def test_without_torchao_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == "torchao"]:
        monkeypatch.delitem(sys.modules, name)

    class Absent:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "torchao":
                raise ModuleNotFoundError("No module named 'torchao'", name=name)

    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    config = TrainConfig(preset="tiny", precision=_EMULATED)
    with torch.device("meta"):
        model = Transformer(PRESETS["tiny"])
    with pytest.raises(MissingPackageError, match="in float8 need the package torchao"):
        convert(model, config, _WORLD)


def test_of_the_import_only_the_noise_is_kept_from_the_log(caplog: pytest.LogCaptureFixture) -> None:
    library = logging.getLogger("torchao")
    with _without_noise():
        library.warning("Failed to load %s: %s", "_C_mxfp8.so", "no such file")
        library.error("the library is broken")
    library.warning("Failed to load later")
    assert caplog.messages == ["the library is broken", "Failed to load later"]
