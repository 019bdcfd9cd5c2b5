"""Which torch `make setup` takes: from what pip reports, what the public CPU index has, and TORCH_INDEX."""

import re
import subprocess

import pytest

from local.setup.torch_build import Choice, Offer, choose, holds, offer_of
from tests.markdown import ROOT

PUBLIC = "https://cpu.example/whl"
LINUX = {"platform_system": "Linux", "platform_machine": "x86_64", "python_version": "3.11"}
MAC = LINUX | {"platform_system": "Darwin", "platform_machine": "arm64"}
REQUIRED = [
    "filelock",
    "setuptools>=77.0.3",
    'cuda-toolkit[cublas,cudart]==13.0.3; platform_system == "Linux"',
    'cuda-bindings<14,>=13.0.3; platform_system == "Linux" and python_version < "3.15"',
    'nvidia-nccl-cu13==2.29.7; platform_system == "Linux"',
    'triton==3.7.1; platform_system == "Linux" and python_version < "3.15"',
    'opt-einsum>=3.3; extra == "opt-einsum"',
]
"""Of PyPI's torch 2.13.0, shortened; the wheel for macOS has the same lines."""
FOR_CPU = Offer(version="2.13.0+cpu", wheel="torch-2.13.0+cpu.whl", gpu_packages=())
FOR_GPU = Offer(version="2.13.0", wheel="torch-2.13.0.whl", gpu_packages=("cuda-toolkit", "triton"))
NOTHING = Choice()


def report(version: str, required: list[str], environment: dict[str, str]) -> dict[str, object]:
    url = f"https://host.example/torch-{version.replace('+', '%2B')}-cp311-cp311-any.whl#sha256=0"
    metadata = {"name": "torch", "version": version, "requires_dist": required}
    return {
        "install": [{"download_info": {"url": url}, "metadata": metadata}],
        "environment": environment,
    }


def choice(here: Offer | None, public: Offer | None = None, torch_index: str = "") -> Choice:
    return choose("torch==2.13.0", here=here, public=public, public_index=PUBLIC, torch_index=torch_index)


@pytest.mark.parametrize(
    ("here", "public", "torch_index", "arguments"),
    [
        pytest.param(FOR_CPU, None, "", (), id="the CPU build is here: nothing is done"),
        pytest.param(
            FOR_GPU,
            FOR_CPU,
            "",
            ("--index-url", PUBLIC, "torch==2.13.0+cpu"),
            id="CUDA here, the CPU build there: exactly that one",
        ),
        pytest.param(FOR_GPU, None, "", (), id="CUDA here and no answer: plain pip"),
        pytest.param(FOR_GPU, FOR_GPU, "", (), id="CUDA here and there, as a mirror may have it: plain pip"),
        pytest.param(
            None,
            FOR_CPU,
            "",
            ("--index-url", PUBLIC, "torch==2.13.0+cpu"),
            id="no torch here, the CPU build there",
        ),
        pytest.param(None, None, "", (), id="no torch anywhere: plain pip, which says so"),
        pytest.param(
            FOR_CPU,
            FOR_CPU,
            "https://gpu.example",
            ("--index-url", "https://gpu.example", "torch==2.13.0"),
            id="TORCH_INDEX wins, whatever it has",
        ),
    ],
)
def test_which_index(
    here: Offer | None, public: Offer | None, torch_index: str, arguments: tuple[str, ...]
) -> None:
    assert choice(here, public, torch_index).arguments == arguments


@pytest.mark.parametrize(
    ("chosen", "more"),
    [
        pytest.param(choice(FOR_CPU), False, id="the CPU build is here"),
        pytest.param(choice(FOR_GPU, FOR_CPU), False, id="the CPU build is there"),
        pytest.param(choice(None), False, id="none is anywhere"),
        pytest.param(choice(FOR_GPU), True, id="CUDA alone"),
        pytest.param(choice(FOR_CPU, torch_index="https://gpu.example"), True, id="an index of the user's"),
    ],
)
def test_only_a_build_for_gpus_brings_what_no_lock_file_has(chosen: Choice, *, more: bool) -> None:
    assert chosen.requires_more is more


def test_with_the_cpu_build_at_hand_nothing_is_said() -> None:
    assert choice(FOR_CPU) == NOTHING


def test_taking_the_cpu_build_from_elsewhere_is_said_with_the_reason() -> None:
    assert choice(FOR_GPU, FOR_CPU).message == (
        "torch 2.13.0+cpu comes from https://cpu.example/whl: pip's index here offers torch-2.13.0.whl, "
        "which requires cuda-toolkit, triton. `make setup TORCH_INDEX=URL` takes torch from elsewhere."
    )


def test_what_is_fetched_without_the_cpu_build_is_said_with_its_size() -> None:
    assert choice(FOR_GPU).message == (
        "torch comes with GPU libraries, about 2.7 GB to fetch, and a .venv of 5.6 GB instead of 1.5: "
        "pip's index here offers torch-2.13.0.whl, which requires cuda-toolkit, triton, and "
        "https://cpu.example/whl gives no CPU build. `make setup TORCH_INDEX=URL` takes torch from elsewhere."
    )


def test_without_any_torch_no_size_is_said() -> None:
    assert choice(None).message == (
        "pip's index here offers no torch==2.13.0, and https://cpu.example/whl gives no CPU build. "
        "`make setup TORCH_INDEX=URL` takes torch from elsewhere."
    )


def test_the_address_in_torch_index_is_not_printed() -> None:
    assert "secret" not in choice(None, None, "https://me:secret@host.example").message


@pytest.mark.parametrize(
    ("version", "required", "environment", "is_for_cpu"),
    [
        pytest.param("2.13.0+cpu", ["filelock"], LINUX, True, id="labelled cpu"),
        pytest.param("2.13.0", ["filelock"], LINUX, True, id="no label, nothing for a GPU"),
        pytest.param("2.13.0", REQUIRED, LINUX, False, id="PyPI's on Linux: no label, but CUDA's libraries"),
        pytest.param("2.13.0", REQUIRED, MAC, True, id="PyPI's on macOS: the libraries are for Linux"),
        pytest.param("2.13.0+cu130", ["filelock"], LINUX, False, id="labelled CUDA, all in the wheel"),
        pytest.param("2.13.0+rocm7.0", ["filelock"], LINUX, False, id="labelled ROCm"),
        pytest.param("2.13.0+xpu", ["filelock"], LINUX, False, id="labelled XPU"),
        pytest.param("2.13.0+corp.1", ["filelock"], LINUX, True, id="somebody's own label"),
        pytest.param("2.13.0+cpu", REQUIRED, LINUX, False, id="labelled cpu by mistake"),
    ],
)
def test_which_build_it_is(
    version: str, required: list[str], environment: dict[str, str], *, is_for_cpu: bool
) -> None:
    assert offer_of(report(version, required, environment)).is_for_cpu is is_for_cpu


def test_an_offer_names_its_wheel_and_what_of_it_is_for_a_gpu() -> None:
    assert str(offer_of(report("2.13.0+cu130", REQUIRED, LINUX))) == (
        "torch-2.13.0+cu130-cp311-cp311-any.whl, which requires cuda-toolkit, cuda-bindings, "
        "nvidia-nccl-cu13 and 1 more"
    )


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        pytest.param("", True, id="none"),
        pytest.param(' platform_system == "Linux"', True, id="equal"),
        pytest.param(' platform_system != "Linux"', False, id="not equal"),
        pytest.param("'x86' in platform_machine", True, id="a part of"),
        pytest.param("'arm' not in platform_machine", True, id="no part of"),
        pytest.param('python_version >= "3.9"', True, id="versions are numbers: 3.11 is after 3.9"),
        pytest.param('python_version < "3.11"', False, id="before"),
        pytest.param('extra == "optree"', False, id="no extra is asked for"),
        pytest.param(
            'platform_system == "Linux" and (python_version < "3" or platform_machine == "x86_64")',
            True,
            id="and, or, brackets",
        ),
        pytest.param('python_version ~= "2.7"', True, id="cannot be read: it counts"),
        pytest.param('planet == "Mars"', True, id="an unknown name: it counts"),
    ],
)
def test_markers(marker: str, *, expected: bool) -> None:
    assert holds(marker, LINUX) is expected


def test_make_setup_takes_nothing_without_a_hash_but_torch_and_the_package_itself() -> None:
    make = ["make", "--dry-run", "--always-make", ".venv/.ready", "PIP_ARGS=--proxy p", "PYTHON=python"]
    lines = subprocess.run(make, cwd=ROOT, capture_output=True, check=True, text=True).stdout.splitlines()
    steps = [line for line in lines if " pip install " in line or "torch_build" in line]
    locked, settled, torch, package = steps
    assert " --proxy p --no-compile --require-hashes --no-deps -r requirements.lock" in locked
    assert settled == ".venv/bin/python local/setup/torch_build.py torch==2.13.0 --no-compile --proxy p"
    assert torch.endswith(" --proxy p --no-compile --no-deps torch==2.13.0")
    assert " --no-deps --no-build-isolation --editable ." in package
    assert lines.index(".venv/bin/python -m pip check") > lines.index(package)


def test_every_line_of_a_lock_has_hashes() -> None:
    for path in ROOT.glob("requirements*.lock"):
        pinned = re.split(r"\n(?=\S)", path.read_text(encoding="utf-8").strip())
        assert [one for one in pinned if "==" not in one or "--hash=sha256:" not in one] == [], path.name


def test_no_lock_asks_for_torch() -> None:
    """A lock that names torch would bring it from pip's own index, in the SDK v3's environment unasked."""
    locks = [path.with_suffix(".lock").read_text(encoding="utf-8") for path in ROOT.glob("requirements*.in")]
    assert locks
    assert [line for text in locks for line in text.splitlines() if line.startswith("torch==")] == []
