"""The order in which a training asks its device, on a stand-in for Trainium whose tensors are on the CPU."""

import sys
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
import torch
import torch.distributed as dist

from tests.integration.training.test_loop import Recorder, _trainer
from training.config import read_config
from training.config.choices import DeviceName
from training.config.environment import device_variables
from training.errors import ConfigError, MissingPackageError
from training.ranks.devices import Cpu, Neuron, accelerator, accelerator_of
from training.ranks.world import World


class Runtime(ModuleType):
    """In the place of what torch.get_device_module gives: notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__("neuron")
        self.calls: list[str] = []

    def set_device(self, index: int) -> None:
        self.calls.append(f"set_device {index}")

    def synchronize(self, _device: torch.device) -> None:
        self.calls.append("synchronize")

    def mark_step(self) -> None:
        self.calls.append("mark_step")


def _item(self: torch.Tensor, runtime: Runtime, original: Callable[[torch.Tensor], object]) -> object:
    runtime.calls.append("read")
    return original(self)


def test_a_graph_ends_once_a_step_and_the_host_reads_only_where_it_reports_or_saves(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = Runtime()
    recorder = Recorder()
    there = replace(world, accelerator=Neuron(runtime))
    trainer = _trainer(
        there, recorder, steps=6, log_every=3, checkpoint_every=6, gradient_accumulation_steps=2
    )
    read = torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda self: _item(self, runtime, read))
    trainer.run(range(1, 7))
    steps = "".join({"mark_step": "m", "read": "r", "synchronize": "s"}[call] for call in runtime.calls)
    before, between, after = steps[:2], steps[2:].partition("mmm")[0], steps.rpartition("m")[2]
    assert steps.count("m") == 6
    assert before == "mm", "no host read in a step that is not reported"
    assert set(between) <= {"m", "r"}
    assert set(after) == {"r"}, "the last step is reported and saved when its graph has ended"
    assert "s" not in steps, "nothing waits for the device but reports and saves"
    assert recorder.saved == [6]


def test_a_rank_takes_its_core_and_what_the_runtime_does_not_tell_is_left_out() -> None:
    runtime = Runtime()
    core = Neuron(runtime)
    with pytest.raises(RuntimeError, match="neuron"):
        core.device(3)  # this torch has no such device; the runtime was told first
    assert runtime.calls == ["set_device 3"]
    cpu = torch.device("cpu")
    assert (core.name(cpu), core.total_memory(cpu)) == ("", None)
    assert core.peak_memory(cpu) == Cpu().peak_memory(cpu)


def test_without_the_package_of_aws_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch_neuronx", None)
    with pytest.raises(MissingPackageError, match="device neuron need the package torch_neuronx"):
        accelerator(DeviceName.NEURON)


def test_a_device_is_found_by_its_type_and_by_default_by_what_there_is() -> None:
    assert isinstance(accelerator_of(torch.device("cpu")), Cpu)
    assert type(accelerator(DeviceName.AUTO)) is type(
        accelerator(DeviceName.CUDA if torch.cuda.is_available() else DeviceName.CPU)
    )
    assert dist.is_available()


def test_weights_in_bf16_are_rounded_stochastically_unless_the_job_says_otherwise() -> None:
    rounding = "NEURON_RT_STOCHASTIC_ROUNDING_EN"
    assert device_variables(DeviceName.NEURON, {})[rounding] == "1"
    assert rounding not in device_variables(DeviceName.NEURON, {rounding: "0"})
    assert device_variables(DeviceName.AUTO, {}) == {}


def test_the_compiler_learns_that_the_model_is_a_transformer_beside_the_job_s_own_flags() -> None:
    name = "NEURON_CC_FLAGS"
    assert device_variables(DeviceName.NEURON, {})[name] == "--model-type=transformer"
    asked = device_variables(DeviceName.NEURON, {name: "--optlevel 1"})
    assert asked[name] == "--model-type=transformer --optlevel 1"
    with pytest.raises(ConfigError, match="NEURON_CC_FLAGS: --optlevel must be one of 1, 2, 3, not '4'"):
        device_variables(DeviceName.NEURON, {name: "--optlevel=4"})
    assert device_variables(DeviceName.CPU, {name: "--optlevel=4"}) == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--precision=bf16"], "device neuron needs precision bf16_pure"),
        (["--precision=bf16_pure", "--compile=inductor"], "device neuron needs compile none"),
        (["--precision=bf16_pure", "--cpu_offload=true"], "device neuron needs cpu_offload false"),
        (["--precision=bf16_pure", "--document_mask=true", "--data=x"], "needs document_mask false"),
    ],
)
def test_what_trainium_cannot_do_is_refused_at_the_start(options: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read_config(["--device=neuron", *options], {})


def test_a_step_on_a_cpu_draws_what_torch_draws_of_its_seed() -> None:
    Cpu().seed(7)
    drawn = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(drawn, torch.rand(3))
