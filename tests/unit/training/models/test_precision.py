"""Which precision a job trains in that leaves it open."""

import json
from typing import Any

import pytest
import torch

from training.config import read_config
from training.config.choices import DeviceName, Precision
from training.errors import ConfigError
from training.models.precision import Kept, choose, noted, precision_of
from training.preemptible.checkpoint.manifest import Manifest
from training.ranks import devices
from training.ranks.devices import Cpu, Cuda, Processor

_P = Precision
_SLOW = "one has neither AMX nor AVX512-BF16"
_KEPT = Kept(precision=_P.FP32, step=40)


@pytest.mark.parametrize(
    ("wanted", "device", "slow", "kept", "chosen"),
    [
        pytest.param(_P.AUTO, DeviceName.CUDA, ["", ""], None, _P.BF16, id="GPUs with bf16"),
        pytest.param(_P.AUTO, DeviceName.CUDA, ["T4 has none"], None, _P.FP32, id="a GPU without"),
        pytest.param(_P.AUTO, DeviceName.CPU, [""], None, _P.BF16, id="a CPU with bf16"),
        pytest.param(_P.AUTO, DeviceName.CPU, [_SLOW], None, _P.FP32, id="a CPU without"),
        pytest.param(_P.AUTO, DeviceName.CPU, ["", _SLOW], None, _P.FP32, id="one of two hosts without"),
        pytest.param(_P.AUTO, DeviceName.CPU, [_SLOW, ""], None, _P.FP32, id="the first of two without"),
        pytest.param(_P.AUTO, DeviceName.NEURON, [""], None, _P.BF16_PURE, id="Trainium"),
        pytest.param(
            _P.AUTO,
            DeviceName.NEURON,
            [""],
            _KEPT,
            _P.BF16_PURE,
            id="Trainium, resumed",
        ),
        pytest.param(_P.AUTO, DeviceName.CPU, [""], _KEPT, _P.FP32, id="resumed where bf16 is fast"),
        pytest.param(
            _P.AUTO,
            DeviceName.CPU,
            [_SLOW],
            Kept(precision=_P.BF16, step=1),
            _P.BF16,
            id="resumed where bf16 is slow",
        ),
        pytest.param(
            _P.AUTO,
            DeviceName.CUDA,
            [""],
            Kept(precision=_P.FLOAT8, step=1),
            _P.FLOAT8,
            id="resumed in float8",
        ),
        *(
            pytest.param(written, DeviceName.CPU, [slow], None, written, id=f"{written}, {slow or 'fast'}")
            for written in _P
            if written is not _P.AUTO
            for slow in ("", _SLOW)
        ),
    ],
)
def test_the_precision_of_an_attempt(
    wanted: Precision, device: DeviceName, slow: list[str], kept: Kept | None, chosen: Precision
) -> None:
    assert choose(wanted, device=device, slow=slow, kept=kept).precision is chosen


def test_the_log_says_what_was_chosen_and_why() -> None:
    def lines(wanted: Precision, slow: str = "", kept: Kept | None = None) -> list[str]:
        return choose(wanted, device=DeviceName.CPU, slow=[slow], kept=kept).lines()

    assert lines(_P.AUTO) == ["precision: bf16, by precision auto: computed fast on every device of this job"]
    assert lines(_P.AUTO, _SLOW) == [f"precision: fp32, by precision auto: {_SLOW}"]
    assert lines(_P.AUTO, kept=_KEPT) == ["precision: fp32, by precision auto: as the checkpoint of step 40"]
    assert lines(_P.FP32, _SLOW) == ["precision: fp32, as the job says"]


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        pytest.param(_P.BF16, None, id="written"),
        pytest.param(_P.BF16_PURE, None, id="pure"),
        pytest.param(_P.AUTO, Kept(precision=_P.BF16, step=3), id="kept"),
    ],
)
def test_bf16_where_it_is_slow_is_taken_with_a_warning(wanted: Precision, kept: Kept | None) -> None:
    on_cpu = choose(wanted, device=DeviceName.CPU, slow=["", _SLOW], kept=kept)
    slower = f"so {on_cpu.precision} is likely slower than fp32: set precision fp32"
    assert on_cpu.warning.startswith(f"{_SLOW}, {slower}, or use an instance")
    assert "c7a" in on_cpu.warning
    on_gpu = choose(wanted, device=DeviceName.CUDA, slow=["T4 has none"], kept=kept)
    assert on_gpu.warning == f"T4 has none, {slower}"
    assert not choose(wanted, device=DeviceName.CPU, slow=["", ""], kept=kept).warning


@pytest.mark.parametrize("precision", [_P.FP32, _P.FLOAT8_EMULATED])
def test_nobody_is_warned_who_does_not_compute_in_bf16_for_speed(precision: Precision) -> None:
    assert not choose(precision, device=DeviceName.CPU, slow=[_SLOW], kept=None).warning


@pytest.mark.parametrize(
    ("capability", "lacks"),
    [
        ((7, 0), "one has no bf16 units: its compute capability is 7.0, and 8.0 has them"),
        ((7, 5), "one has no bf16 units: its compute capability is 7.5, and 8.0 has them"),
        ((8, 0), ""),
        ((8, 9), ""),
        ((9, 0), ""),
        ((12, 0), ""),
    ],
)
def test_a_gpu_is_asked_for_its_compute_capability(
    capability: tuple[int, int], lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _device: "one")
    assert Cuda().slow_bf16(torch.device("cuda", 0)) == lacks


def test_a_cpu_is_asked_for_its_flags_and_torch_for_its_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ONEDNN_MAX_CPU_ISA", raising=False)
    monkeypatch.delenv("DNNL_MAX_CPU_ISA", raising=False)
    here = Processor(name="one", flags=frozenset({"bf16"}))
    monkeypatch.setattr(devices, "this_processor", lambda: here)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert Cpu().slow_bf16(torch.device("cpu")).startswith("this build of torch does not use")


def _manifest(**fields: Any) -> Manifest:
    known: dict[str, Any] = {
        "step": 5,
        "world_size": 1,
        "hosts": 1,
        "guard": {"weights": "fp32"},
        "carried": {},
        "files": {},
        "seconds": 1.0,
        "saved_at": "2026-11-27T00:00:00+00:00",
        "hashes": None,
    }
    return Manifest.parsed(json.dumps({**known, **fields}).encode())


@pytest.mark.parametrize(
    ("fields", "precision"),
    [
        pytest.param({"notes": noted(_P.FP32)}, _P.FP32, id="noted"),
        pytest.param({"notes": {"precision": "float8"}}, _P.FLOAT8, id="float8 noted"),
        pytest.param({}, _P.BF16, id="written before: the default was bf16"),
        pytest.param({"guard": {"weights": "bf16"}}, _P.BF16_PURE, id="written before, of bf16 weights"),
        pytest.param({"guard": {}}, _P.BF16, id="written before weights were named"),
        pytest.param({"notes": {}}, _P.BF16, id="of a script without notes"),
    ],
)
def test_a_checkpoint_tells_what_it_was_trained_in(fields: dict[str, Any], precision: Precision) -> None:
    assert precision_of(_manifest(**fields)) is precision


def test_a_manifest_keeps_its_notes() -> None:
    manifest = _manifest(notes={"precision": "fp32"})
    assert Manifest.parsed(manifest.text()).notes == {"precision": "fp32"}


def test_auto_contradicts_nothing_that_bf16_did_not() -> None:
    assert read_config([], {}).precision is _P.AUTO
    for words in ("--reduce_dtype bf16", "--optimizer muon", "--optimizer adamw_8bit", "--device neuron"):
        read_config(words.split(), {})
    with pytest.raises(ConfigError, match="optimizer muon needs fp32 weights, which precision bf16_pure"):
        read_config(["--device", "neuron", "--optimizer", "muon"], {})
