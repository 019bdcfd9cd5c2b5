"""What `make setup` does about torch, with the pip of a bare environment and two indexes of small wheels."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.markdown import ROOT

pytestmark = pytest.mark.long

REFUSED = "http://127.0.0.1:9/whl"  # the discard port: nothing listens
CPU, GPU = "torch==2.13.0+cpu", "torch==2.13.0"
PIP_OF_A_NEWER_RELEASE = """
import json, sys
from pathlib import Path

options = sys.argv[1:]
with Path({asked!r}).open("a") as asked:
    asked.write(json.dumps(options) + "\\n")
offer = {{"download_info": {{"url": "file:///torch.whl"}}, "metadata": {{"version": "2.13.0+cpu"}}}}
report = Path(options[options.index("--report") + 1])
report.write_text(json.dumps({{"install": [offer], "environment": {{}}}}))
"""


@dataclass
class Index:
    """Wheels by PEP 503, and the paths that were asked for."""

    folder: Path
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def add(self, wheel: str, *requires: str, code: str = "") -> None:
        """A wheel such as `torch-2.13.0+cpu`, with a line for each package that it requires."""
        name, _, version = wheel.partition("-")
        project, record = name.replace("_", "-"), f"{wheel}.dist-info"
        page = self.folder / "simple" / project / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        file = f"{wheel}-py3-none-any.whl"
        with ZipFile(page.with_name(file), "w") as archive:
            lines = [
                f"Name: {project}",
                f"Version: {version}",
                *(f"Requires-Dist: {one}" for one in requires),
            ]
            archive.writestr(f"{record}/METADATA", "\n".join(["Metadata-Version: 2.1", *lines, ""]))
            archive.writestr(
                f"{record}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{name}/__init__.py", "")
            archive.writestr(f"{name}/__main__.py", code)
            archive.writestr(f"{record}/RECORD", "\n".join(f"{one},," for one in archive.namelist()))
        with page.open("a") as links:
            links.write(f'<a href="{file.replace("+", "%2B")}">{file}</a>\n')


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """The index that pip uses on this machine."""
    yield from served(Index(tmp_path / "index"))


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Index]:
    """In the place of PyTorch's index of CPU builds."""
    yield from served(Index(tmp_path / "public"))


def served(index: Index) -> Iterator[Index]:
    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, directory=str(index.folder), **options)

        def log_request(self, *_):
            index.asked.append(self.path)

        def log_message(self, *_):
            pass

    (index.folder / "simple").mkdir(parents=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        index.url = f"http://127.0.0.1:{server.server_port}/simple"
        yield index
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder


@dataclass
class Environment:
    """A bare environment, and the two commands of `make setup` that install into it."""

    python: Path
    index: Index

    def make_setup(self, *pip_args: str, public: str, torch_index: str = "") -> str:
        """What is printed. Before torch a package is installed that requires torch, as the lock has one."""
        self._python("-m", "pip", "install", "--quiet", "--no-deps", *pip_args, "needs-torch")
        program = [ROOT / "local/setup/torch_build.py", "--public-index", public, GPU, *pip_args]
        printed = self._python(*program, TORCH_INDEX=torch_index)
        self._python("-m", "pip", "install", "--quiet", *pip_args, "--no-deps", GPU)
        return printed

    def installed(self) -> set[str]:
        everything = set(self._python("-m", "pip", "freeze", "--all").split())
        return {one for one in everything if not one.startswith(("pip==", "setuptools==", "wheel=="))}

    def _python(self, *arguments: object, **variables: str) -> str:
        machine = {"PIP_INDEX_URL": self.index.url, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
        done = subprocess.run(
            [self.python, *map(str, arguments)],
            env={"PATH": os.defpath, **machine, **variables},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
            timeout=60,
        )
        return done.stdout


@pytest.fixture
def environment(bare: Path, index: Index) -> Iterator[Environment]:
    index.add("needs_torch-1", "torch")
    index.add("nvidia_cublas-1")
    yield Environment(bare / "bin/python", index)
    remove = ["uninstall", "--quiet", "--yes", "torch", "needs-torch", "nvidia-cublas"]
    subprocess.run([bare / "bin/python", "-m", "pip", *remove], check=True, capture_output=True)


def with_gpu_build(index: Index) -> None:
    index.add("torch-2.13.0", 'nvidia-cublas; platform_system != "none"')


def with_cpu_build(index: Index) -> None:
    index.add("torch-2.13.0+cpu")


def test_an_index_with_the_cpu_build_is_used_as_ever(environment: Environment, public: Index):
    with_gpu_build(environment.index)
    with_cpu_build(environment.index)
    with_cpu_build(public)
    assert environment.make_setup(public=public.url) == ""
    assert environment.installed() == {CPU, "needs-torch==1"}
    assert public.asked == []


@pytest.mark.parametrize("pip_args", [(), ("--upgrade",), ("--quiet", "--no-compile")])
def test_where_the_index_has_cuda_the_public_one_is_used_for_torch_alone(
    environment: Environment, public: Index, pip_args: tuple[str, ...]
):
    with_gpu_build(environment.index)
    with_cpu_build(public)
    printed = environment.make_setup(*pip_args, public=public.url)
    assert printed.startswith(f"torch 2.13.0+cpu comes from {public.url}: ")
    assert printed.count("\n") == 1
    assert environment.installed() == {CPU, "needs-torch==1"}
    assert {path.split("/")[2] for path in public.asked} == {"torch"}


def test_without_the_public_index_the_size_is_said_and_setup_goes_on(environment: Environment):
    with_gpu_build(environment.index)
    printed = environment.make_setup(public=REFUSED)
    assert printed.startswith("torch comes with GPU libraries, about 2.7 GB to fetch")
    assert printed.count("\n") == 1
    assert environment.installed() == {GPU, "needs-torch==1", "nvidia-cublas==1"}


def test_a_public_index_that_never_answers_is_not_waited_for(environment: Environment):
    with_gpu_build(environment.index)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        began = time.monotonic()
        printed = environment.make_setup(public=f"http://127.0.0.1:{mute.getsockname()[1]}/whl")
        assert time.monotonic() - began < 30
    assert "gives no CPU build" in printed


def test_torch_index_is_used_as_it_is(environment: Environment, public: Index):
    with_cpu_build(environment.index)
    with_gpu_build(public)
    environment.make_setup(public=REFUSED, torch_index=public.url)
    assert environment.installed() == {GPU, "needs-torch==1", "nvidia-cublas==1"}


def test_a_torch_index_without_torch_stops_setup(environment: Environment, public: Index):
    with_cpu_build(environment.index)
    with pytest.raises(subprocess.CalledProcessError):
        environment.make_setup(public=REFUSED, torch_index=public.url)
    assert environment.installed() == {"needs-torch==1"}


def test_a_pip_that_fetches_no_wheel_to_answer_is_asked_where_there_is_one(
    environment: Environment, tmp_path: Path
):
    asked = tmp_path / "asked"
    with_cpu_build(environment.index)
    environment.index.add("pip-25.3", code=PIP_OF_A_NEWER_RELEASE.format(asked=str(asked)))
    environment.make_setup(public=REFUSED)
    (options,) = map(json.loads, asked.read_text().splitlines())
    assert {"--dry-run", "--no-deps", "--use-feature=fast-deps"} <= set(options)
    assert environment.installed() == {CPU, "needs-torch==1"}
