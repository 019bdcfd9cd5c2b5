"""Which build of torch `make setup` installs: the one for CPUs, unless another is asked for or cannot get it.

    python local/setup/torch_build.py torch==2.13.0 [arguments of pip]

It runs after the lock file was installed, which has all that a CPU build requires. Where a plain `pip
install` would take the CPU build it does nothing. Otherwise it installs torch, alone, from another index, and
for a build for GPUs what that requires, which no lock file has.
"""

import argparse
import ast
import json
import operator
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's public index of CPU builds: https://pytorch.org/get-started/locally."""
ASKING_PIP = "pip>=25.3,<=26.3"
"""Version of pip: before 25.3 it fetches the whole wheel, half a GB, to answer a dry run (pypa/pip issue
12603)."""
NO_WHOLE_WHEEL = "--use-feature=fast-deps"
"""Reads a wheel's requirements out of the wheel by HTTP ranges where the index has no file for them."""
WITHOUT_WAITING = ("--timeout", "3", "--retries", "0")  # seconds for each connection
ANSWER_SECONDS = (
    10  # for all of pip's answer: its own start, every address of the host, the page, the requirements
)
GPU_SIZES = "2.7 GB to fetch, and a .venv of 5.6 GB instead of 1.5"
"""Sizes of torch 2.13.0 on PyPI for x86_64 Linux, with its 19 GPU packages; pip's report has none."""

_GPU_LABEL = re.compile(r"cu\d|rocm|xpu")
_GPU_PACKAGE = re.compile(r"(nvidia|cuda|triton|pytorch[-_.]triton)\b", re.IGNORECASE)
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda part, whole: part in whole,
    ast.NotIn: lambda part, whole: part not in whole,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The package that pip's report says it would install."""

    version: str
    wheel: str
    gpu_packages: tuple[str, ...]
    """Packages it requires here for a GPU. PyPI's build for CUDA has no label: these give it away."""

    @property
    def is_for_cpu(self) -> bool:
        return not self.gpu_packages and not _GPU_LABEL.match(self.version.partition("+")[2])

    def __str__(self) -> str:
        first = ", ".join(self.gpu_packages[:3])
        rest = f" and {len(self.gpu_packages) - 3} more" if len(self.gpu_packages) > 3 else ""  # noqa: PLR2004
        return f"{self.wheel}, which requires {first}{rest}" if first else self.wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Arguments for a `pip install` of torch alone, if it is needed; a line to print, if there is one."""

    arguments: tuple[str, ...] = ()
    message: str = ""
    requires_more: bool = False
    """Whether it is, or may be, a build that requires packages for GPUs."""


def offer_of(report: Mapping[str, Any]) -> Offer:
    """Read the offer in the report of `pip install --no-deps` of one requirement."""
    (installed,) = report["install"]
    metadata = installed["metadata"]
    required = (text.partition(";") for text in metadata.get("requires_dist", ()))
    holding = (name for name, _, marker in required if holds(marker, report["environment"]))
    return Offer(
        version=metadata["version"],
        wheel=unquote(urlsplit(installed["download_info"]["url"]).path.rpartition("/")[2]),
        gpu_packages=tuple(re.split(r"[^\w.-]", name)[0] for name in holding if _GPU_PACKAGE.match(name)),
    )


def holds(marker: str, environment: Mapping[str, str]) -> bool:
    """Tell whether a requirement with this marker counts there; one that cannot be read counts.

    But for `~=` and `===`, markers are expressions of Python, too
    (https://packaging.python.org/specifications/dependency-specifiers). `extra` is empty: none is asked for.
    """
    try:
        return not marker or bool(_value(ast.parse(marker.strip(), mode="eval").body, environment))
    except (SyntaxError, KeyError, TypeError):
        return True


def _value(node: ast.expr, environment: Mapping[str, str]) -> Any:  # noqa: ANN401  a truth, a text or a version
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, environment) for part in parts)
        case ast.BoolOp(values=parts):
            return any(_value(part, environment) for part in parts)
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            return _COMPARISONS[type(comparison)](_value(left, environment), _value(right, environment))
        case ast.Name(id=name):
            return _comparable({"extra": "", **environment}[name])
        case ast.Constant(value=str(text)):
            return _comparable(text)
        case _:
            raise TypeError(ast.dump(node))


def _comparable(text: str) -> str | tuple[int, ...]:
    is_version = re.fullmatch(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in text.split(".")) if is_version else text


def choose(
    requirement: str, *, here: Offer | None, public: Offer | None, public_index: str, torch_index: str
) -> Choice:
    """Choose the build of torch to install.

    Args:
        requirement: What the environment needs, such as `torch==2.13.0`.
        here: What plain pip would install; None if it finds nothing.
        public: What the public CPU index has; None if it did not answer, or has nothing for this machine.
        public_index: Its address.
        torch_index: `TORCH_INDEX`, an address that the user chose, or empty.
    """
    if torch_index:
        return Choice(
            arguments=("--index-url", torch_index, requirement),
            message=f"{requirement} comes from the index that TORCH_INDEX names.",
            requires_more=True,
        )
    if here and here.is_for_cpu:
        return Choice()
    offered = f"pip's index here offers {here or f'no {requirement}'}"
    remedy = "`make setup TORCH_INDEX=URL` takes torch from elsewhere."
    if public and public.is_for_cpu:
        return Choice(
            arguments=("--index-url", public_index, f"torch=={public.version}"),
            message=f"torch {public.version} comes from {public_index}: {offered}. {remedy}",
        )
    sizes = f"torch comes with GPU libraries, about {GPU_SIZES}: " if here else ""
    message = f"{sizes}{offered}, and {public_index} gives no CPU build. {remedy}"
    return Choice(message=message, requires_more=here is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pip:
    """`pip install` with the user's arguments, silent but for its errors."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def install(self, *arguments: str, heard: bool = True, limit: float | None = None) -> bool:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        output = None if heard else subprocess.DEVNULL
        try:
            done = subprocess.run(
                [*command, *self.arguments, *arguments],
                env={**os.environ, **self.environment},
                stdout=output,
                stderr=output,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def offer(self, *arguments: str, limit: float | None = None) -> Offer | None:
        with TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            question = ("--dry-run", "--no-deps", "--ignore-installed", "--report", str(report))
            if not self.install(*question, *arguments, heard=False, limit=limit):
                return None  # what pip has to say it says again when it installs
            return offer_of(json.loads(report.read_text(encoding="utf-8")))


def pip_for_questions(pip: Pip, folder: str) -> Pip:
    """Make a pip in the folder that answers without fetching wheels; else return the one given."""
    wanted = ("--no-deps", "--no-compile", "--target", folder, ASKING_PIP)
    if not pip.install(*wanted, *WITHOUT_WAITING, heard=False):
        return pip
    return Pip(arguments=(*pip.arguments, NO_WHOLE_WHEEL), environment={"PYTHONPATH": folder})


def decide(requirement: str, pip: Pip, *, public_index: str, torch_index: str) -> Choice:
    """Decide the choice, asking no more than it needs."""
    here = public = None
    if not torch_index:
        with TemporaryDirectory() as folder:
            asking = pip_for_questions(pip, folder)
            here = asking.offer(requirement)
            if not (here and here.is_for_cpu):
                there = ("--index-url", public_index, *WITHOUT_WAITING, requirement)
                public = asking.offer(*there, limit=ANSWER_SECONDS)
    return choose(requirement, here=here, public=public, public_index=public_index, torch_index=torch_index)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--public-index", default=CPU_INDEX)
    parser.add_argument("requirement")
    parser.add_argument("pip", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    pip = Pip(arguments=tuple(given.pip), environment={})
    choice = decide(
        given.requirement,
        pip,
        public_index=given.public_index,
        torch_index=os.environ.get("TORCH_INDEX", ""),
    )
    if choice.message:
        print(choice.message, flush=True)
    if choice.arguments and not pip.install("--no-deps", *choice.arguments):
        return 1
    return 0 if not choice.requires_more or pip.install(given.requirement) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
