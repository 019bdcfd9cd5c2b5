"""Jobs with an adapter that go on on another number of ranks: which of the samples do they see?"""

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pytest

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
SEEN = re.compile(r"step=(\d+) samples=\[(.*)\]")

END = """
print("the script has ended\\n", end="", flush=True)
"""
ABORTED = "terminate called without an active exception"
"""What a rank says whose interpreter ended under a thread of gloo (pytorch/pytorch#179291)."""

ACCELERATE = """
import sys, torch
from accelerate import Accelerator
from training.preemptible.adapters.accelerate_loop import PreemptibleLoop
folder, steps, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
accelerator = Accelerator(cpu=True)
torch.manual_seed(3)
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self): return iter(torch.arange(24.0).unsqueeze(1))
data = Stream() if "stream" in sys.argv else torch.utils.data.TensorDataset(torch.arange(24.0).unsqueeze(1))
loader = torch.utils.data.DataLoader(data, batch_size=batch, shuffle="stream" not in sys.argv)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
rates = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
model, optimizer, loader, rates = accelerator.prepare(model, optimizer, loader, rates)
for step, batch in PreemptibleLoop(accelerator, folder, steps=steps, save_every=1).batches(loader):
    values = batch if "stream" in sys.argv else batch[0]
    loss = model(values).square().mean()
    accelerator.backward(loss); optimizer.step(); rates.step(); optimizer.zero_grad()
    print(f"loss {step} {loss.item()!r}\\n", end="", flush=True)
    print(f"step={step} samples={[int(value) for value in values.flatten()]}\\n", end="", flush=True)
    if accelerator.is_main_process: print(f"rate {step} {rates.get_last_lr()[0]!r}\\n", end="", flush=True)
"""
LIGHTNING = """
import os, sys, torch, lightning
from training.preemptible.adapters.lightning_trainer import PreemptionCallback, ResumableLoader
folder, steps, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ranks = int(os.environ.get("WORLD_SIZE", "1"))
torch.manual_seed(3)
class Model(lightning.LightningModule):
    def __init__(self): super().__init__(); self.net = torch.nn.Linear(1, 1)
    def training_step(self, batch, index):
        seen = [int(value) for value in batch[0].flatten()]
        print(f"step={self.global_step + 1} samples={seen}\\n", end="", flush=True)
        loss = self.net(batch[0]).square().mean()
        print(f"loss {self.global_step + 1} {loss.item()!r}\\n", end="", flush=True)
        return loss
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=1e-3)
ours = PreemptionCallback(folder, every_n_steps=1)
kind = torch.utils.data.DataLoader if "plain" in sys.argv else ResumableLoader
loader = kind(torch.utils.data.TensorDataset(torch.arange(24.0).unsqueeze(1)), batch_size=batch, shuffle=True)
trainer = lightning.Trainer(
    accelerator="cpu", devices=ranks, strategy="ddp" if ranks > 1 else "auto", callbacks=[ours],
    max_steps=steps, logger=False, enable_progress_bar=False, enable_model_summary=False,
    enable_checkpointing=False,
)
trainer.fit(Model(), loader, ckpt_path=ours.newest)
"""
HF = """
import os, sys, torch
from training.preemptible.adapters.hf_trainer import PreemptionCallback, newest_whole
from transformers import Trainer, TrainerCallback, TrainingArguments
folder, steps, batch, accumulated = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.manual_seed(3)
class Model(torch.nn.Module):
    def __init__(self): super().__init__(); self.net, self.parts = torch.nn.Linear(1, 1), []
    def forward(self, values):
        self.parts += [int(value) for value in values.flatten()]
        if len(self.parts) == batch * accumulated:
            print(f"step={self.step} samples={self.parts}\\n", end="", flush=True)
            self.parts.clear()
        loss = self.net(values).square().mean()
        print(f"loss {self.step} {loss.item()!r}\\n", end="", flush=True)
        return {"loss": loss}
class Counts(TrainerCallback):
    def on_step_begin(self, args, state, control, model, **_):
        getattr(model, "module", model).step = state.global_step + 1
class Data(torch.utils.data.Dataset):
    def __len__(self): return 24
    def __getitem__(self, index): return {"values": torch.tensor([float(index)])}
args = TrainingArguments(
    output_dir=folder, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulated,
    save_steps=1, use_cpu=True, report_to="none", disable_tqdm=True, max_steps=steps, learning_rate=1e-3,
    lr_scheduler_type="constant",
)
trainer = Trainer(model=Model(), args=args, train_dataset=Data(), callbacks=[PreemptionCallback(), Counts()])
trainer.train(resume_from_checkpoint=newest_whole(folder))
"""


@dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    seen: list[set[int]]
    """Samples of each step, over all ranks."""
    samples: list[int]
    """All of them, in no order."""
    rates: dict[int, str]
    losses: dict[int, float]
    """Mean over the ranks, and their parts of a step, by step."""
    errors: str


def _run(script: str, folder: Path, ranks: int, *arguments: object) -> Ran:
    program = folder / "program.py"
    program.write_text(script + END)
    starter = ["-m", "torch.distributed.run", f"--nproc-per-node={ranks}", f"--master-port={_free_port()}"]
    done = subprocess.run(
        [
            "nice",
            sys.executable,
            *(starter if ranks > 1 else []),
            str(program),
            str(folder / "saved"),
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
    )
    return _ran(done, ranks)


def _ran(done: "subprocess.CompletedProcess[str]", ranks: int) -> Ran:
    steps: dict[int, set[int]] = {}
    samples: list[int] = []
    for number, listed in SEEN.findall(done.stdout):
        part = [int(sample) for sample in listed.split(",")]
        steps.setdefault(int(number), set()).update(part)
        samples += part
    rates = {int(step): rate for step, rate in re.findall(r"^rate (\d+) (\S+)$", done.stdout, re.MULTILINE)}
    losses: dict[int, list[float]] = {}
    for step, loss in re.findall(r"^loss (\d+) (\S+)$", done.stdout, re.MULTILINE):
        losses.setdefault(int(step), []).append(float(loss))
    return Ran(
        code=_code(done, ranks),
        seen=[steps[number] for number in sorted(steps)],
        samples=samples,
        rates=rates,
        losses={step: fmean(parts) for step, parts in losses.items()},
        errors=done.stderr,
    )


def _code(done: "subprocess.CompletedProcess[str]", ranks: int) -> int:
    """Give the exit code of the scripts: 0 where those of all ranks ended, and only then one was aborted."""
    has_ended = done.stdout.count("the script has ended") == ranks
    is_aborted = ABORTED in done.stderr and "Traceback" not in done.stderr.partition(ABORTED)[0]
    return 0 if has_ended and is_aborted else done.returncode


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _each_once(first: Ran, second: Ran) -> bool:
    return sorted(first.samples + second.samples) == list(range(24))


@pytest.mark.parametrize(
    ("ranks", "then", "batch", "kind"), [(1, 2, 4, ""), (2, 1, 4, ""), (1, 2, 4, "stream")]
)
def test_C32_S6_accelerate_goes_on_by_samples(
    ranks: int, then: int, batch: int, kind: str, tmp_path: Path
) -> None:
    steps = 24 // (batch * ranks)
    undisturbed = _run(ACCELERATE, _new(tmp_path / "undisturbed"), ranks, steps, batch, kind)
    first = _run(ACCELERATE, _new(tmp_path / "moved"), ranks, 1, batch, kind)
    second = _run(ACCELERATE, tmp_path / "moved", then, steps, batch, kind)
    assert (first.code, second.code) == (0, 0), second.errors
    assert _each_once(first, second)
    assert first.seen + second.seen == undisturbed.seen
    assert {**first.rates, **second.rates} == undisturbed.rates  # a scheduler steps as it did


def test_C32_S6_accelerate_refuses_ranks_that_do_not_divide_and_names_those_that_do(tmp_path: Path) -> None:
    assert _run(ACCELERATE, _new(tmp_path), 1, 1, 3).code == 0
    second = _run(ACCELERATE, tmp_path, 2, 4, 3)
    assert second.code != 0
    assert "2 ranks cannot share the global batch of 3 samples" in second.errors
    assert "run it on 1 or 3 ranks" in second.errors


@pytest.mark.parametrize(("ranks", "then"), [(1, 2), (2, 1)])
def test_C33_S6_lightning_goes_on_by_samples(ranks: int, then: int, tmp_path: Path) -> None:
    steps = 24 // (4 * ranks)
    first = _run(LIGHTNING, _new(tmp_path), ranks, 1, 4)
    second = _run(LIGHTNING, tmp_path, then, steps, 4)
    assert (first.code, second.code) == (0, 0), second.errors
    assert _each_once(first, second)
    assert [len(batch) for batch in second.seen] == [4 * ranks] * (steps - 1)


@pytest.mark.parametrize(
    ("out", "errors", "code"),
    [
        ("the script has ended\nthe script has ended\n", f"{ABORTED}\nSIGABRT", 0),
        ("the script has ended\n", f"{ABORTED}\nSIGABRT", 1),
        ("the script has ended\nthe script has ended\n", "SIGSEGV", 1),
        ("the script has ended\nthe script has ended\n", f"Traceback: ...\n{ABORTED}", 1),
    ],
    ids=["after both ended", "before one ended", "another end", "after an error"],
)
def test_an_abort_counts_as_an_end_only_after_the_scripts_of_all_ranks(
    out: str, errors: str, code: int
) -> None:
    assert _code(subprocess.CompletedProcess([], 1, out, errors), 2) == code


def test_C33_S6_lightning_refuses_a_plain_loader_on_other_ranks(tmp_path: Path) -> None:
    assert _run(LIGHTNING, _new(tmp_path), 2, 1, 4, "plain").code == 0
    second = _run(LIGHTNING, tmp_path, 1, 3, 4, "plain")
    assert second.code == 1
    assert "this attempt has 1 rank, the one before had 2 ranks" in second.errors
    assert "ResumableLoader" in second.errors


def test_S6_trainer_goes_on_by_samples_or_says_what_to_set(tmp_path: Path) -> None:
    first = _run(HF, _new(tmp_path), 2, 2, 4, 1)
    assert first.code == 0, first.errors
    refused = _run(HF, tmp_path, 1, 3, 4, 1)
    assert refused.code == 1
    assert "1 rank with batches of 4 and gradient_accumulation_steps=1 make 4" in refused.errors
    assert "set gradient_accumulation_steps=2" in refused.errors
    second = _run(HF, tmp_path, 1, 3, 4, 2)
    assert second.code == 0, second.errors
    assert _each_once(first, second)


@pytest.mark.parametrize("script", [ACCELERATE, LIGHTNING, HF], ids=["accelerate", "lightning", "trainer"])
def test_R5_two_four_one_and_two_ranks_train_as_two_undisturbed_do(script: str, tmp_path: Path) -> None:
    undisturbed = _run(script, _new(tmp_path / "undisturbed"), 2, 6, *_shares(script, 2))
    _new(tmp_path / "moved")
    lives = ((2, 1), (4, 3), (1, 4), (2, 6))
    attempts = [
        _run(script, tmp_path / "moved", ranks, step, *_shares(script, ranks)) for ranks, step in lives
    ]
    assert [attempt.code for attempt in attempts] == [0] * 4, [attempt.errors for attempt in attempts]
    assert [len(attempt.losses) for attempt in attempts] == [1, 2, 1, 2]
    assert [samples for attempt in attempts for samples in attempt.seen] == undisturbed.seen
    assert sorted(sample for attempt in attempts for sample in attempt.samples) == list(range(24))
    losses = {step: loss for attempt in attempts for step, loss in attempt.losses.items()}
    assert losses == pytest.approx(undisturbed.losses, rel=1e-6)
    assert losses.keys() == set(range(1, 7))


def _shares(script: str, ranks: int) -> tuple[int, ...]:
    """Divide a global batch of 4: Trainer's scripts do it themselves, by accumulation; the others do not."""
    return (1, 4 // ranks) if script is HF else (2,)


def _new(folder: Path) -> Path:
    (folder / "saved").mkdir(parents=True)
    return folder
