"""What the documents tell people to run, open and follow is there."""

import argparse
import ast
import importlib.util
import re
import shlex
import subprocess
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from trainmaster.core.policy import parse_policy
from trainmaster_client.cli.app import app

from local.up import _parser
from local.worlds import KIND, changed
from tests.markdown import ROOT, anchors, blocks, codes, documents, links, text_of, without_blocks
from tests.shell import PROGRAMS

DOCUMENTS = [path.relative_to(ROOT).as_posix() for path in documents()]
SHELL = ("bash", "sh")
LEFT_OUT = re.compile(r"^ *\.\.\.,?$", re.MULTILINE)
"""A line of dots in Python stands for arguments that the reader adds."""
PATH = re.compile(r"\.?[\w-][\w.-]*(/[\w.-]+)*/?")
SUFFIXES = (".py", ".md", ".yaml", ".toml", ".in", ".lock", "/")
MADE_BY_USERS = frozenset({"policy.yaml", "requirements.txt"})
MADE_BY_US = ("build/", ".venv", "dist/")

ELSEWHERE = ("airflow", "sagemaker.core", "sagemaker.train", "transformers")
"""Not installed here, or finds its names when asked for them; what imports it is run by other tests."""

every_document = pytest.mark.parametrize("name", DOCUMENTS)


def files() -> Iterator[str]:
    """Every file and folder of the checkout, with a slash before it and one behind a folder."""
    for top in ROOT.iterdir():
        if top.name.startswith(".") and top.name != ".ci":
            continue
        for path in [top, *(top.rglob("*") if top.is_dir() else ())]:
            yield f"/{path.relative_to(ROOT).as_posix()}{'/' if path.is_dir() else ''}"


FILES = frozenset(files())


def exists(path: str) -> bool:
    """Somewhere in the checkout; documents leave out the folder where it is clear."""
    wanted = {f"/{path}", f"/{path}/"}
    return any(found.endswith(tuple(wanted)) for found in FILES)


def source_of(module: str) -> str:
    """Found, not imported: the SDK takes seconds."""
    top, *inner = module.split(".")
    spec = importlib.util.find_spec(top)
    assert spec is not None, module
    if spec.origin and not inner:
        return Path(spec.origin).read_text(encoding="utf-8")
    assert spec.submodule_search_locations, module
    path = Path(spec.submodule_search_locations[0]).joinpath(*inner)
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def lines_of_shell(text: str) -> Iterator[list[str]]:
    for block in blocks(text, *SHELL):
        for line in block.text.replace("\\\n", " ").splitlines():
            if words := shlex.split(line, comments=True):
                yield words


def commands(text: str) -> Iterator[list[str]]:
    """Every call of ours in blocks and in sentences, without the folder of the program."""
    mentioned = (shlex.split(code) for code in codes(without_blocks(text)) if "'" not in code)
    for program, *words in [*lines_of_shell(text), *mentioned]:
        yield [Path(program).name if "/" in program else program, *words]


def cli(words: list[str]) -> tuple[Any, list[str]]:
    """The sub-command that the words name, and what is left of them."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{command.name} has no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def options_of(command: Any) -> set[str]:
    own = _parser()._option_string_actions if command.name == "up" else {}
    return {"--help", *own, *(option for param in command.params for option in param.opts)}


@every_document
def test_python_blocks_compile_and_import_what_there_is(name: str) -> None:
    for block in blocks(text_of(name), "python"):
        tree = ast.parse(LEFT_OUT.sub("", block.text))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not str(node.module).startswith(ELSEWHERE):
                source = source_of(str(node.module))
                assert [one.name for one in node.names if not re.search(rf"\b{one.name}\b", source)] == []


@every_document
def test_shell_blocks_can_be_read_by_a_shell(name: str) -> None:
    for block in blocks(text_of(name), *SHELL):
        subprocess.run(["sh", "-n"], input=block.text, text=True, check=True, timeout=10)


@every_document
def test_every_make_target_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {words[1] for words in commands(text_of(name)) if words[0] == "make" and len(words) > 1}
    assert named - targets == set()


@every_document
def test_every_command_of_ours_exists_with_its_options(name: str) -> None:
    for words in commands(text_of(name)):
        if words[:3] == ["python", "-m", "local"]:  # the same command by another name
            words[:3] = ["trainmaster", "local"]
        if words[0] == "trainmaster" and len(words) > 1 and words[1] != "COMMAND":
            command, rest = cli(words[1:])
            own = takewhile(lambda word: word != "--", rest)  # what follows is another program's
            assert {word for word in own if word.startswith("--")} - options_of(command) == set()


@every_document
def test_every_python_program_exists(name: str) -> None:
    for words in commands(text_of(name)):
        if words[:2] == ["python", "-m"]:
            assert importlib.util.find_spec(words[2]) is not None, words
        elif words[0] in {"python", "torchrun"}:
            programs = [word for word in words if word.endswith(".py")]
            assert [one for one in programs if not any((ROOT / at / one).is_file() for at in PROGRAMS)] == []


@every_document
def test_every_path_exists(name: str) -> None:
    named = {code for code in codes(without_blocks(text_of(name))) if PATH.fullmatch(code)}
    ours = {code for code in named if code.endswith(SUFFIXES) or (ROOT / code.partition("/")[0]).is_dir()}
    missing = {code for code in ours - MADE_BY_USERS if not code.startswith(MADE_BY_US) and not exists(code)}
    assert missing == set()


@every_document
def test_every_relative_link_leads_somewhere(name: str) -> None:
    for link in links(text_of(name)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@every_document
def test_every_policy_is_valid_and_so_is_every_world(name: str) -> None:
    for block in blocks(text_of(name), "yaml"):
        document = yaml.safe_load(block.text)
        if name == "docs/twin.md":
            changed(KIND, document)
        else:
            parse_policy(document)


def test_the_example_policy_is_valid_and_all_of_it_is_acted_on() -> None:
    policy = parse_policy(yaml.safe_load(text_of("policy.example.yaml")))
    assert len(policy.pools) == len(policy.teams) == 2
    assert policy.warnings == ()


def test_every_control_call_in_a_shell_block_goes_to_a_route() -> None:
    routes = set(re.findall(r"`(?:POST|GET) (/[a-z-]+)`", text_of("docs/twin.md")))
    called = re.findall(r'"\$control(/[a-z-]+)"', text_of("docs/twin.md"))
    assert called
    assert set(called) <= routes


@every_document
def test_C42_no_page_installs_us_by_name_from_an_index(name: str) -> None:
    """On a public index the name belongs to somebody else: only the wheel's path is safe."""
    wheel = re.compile(r"(dist/)?trainmaster-[\w.]+-py3-none-any\.whl(\[[\w,]+\])?")
    for line in re.findall(r"pip install ([^\n`]+)", text_of(name)):
        for argument in shlex.split(line.rstrip("),.;:"), comments=True):
            if argument.startswith(("trainmaster", "dist/")):
                assert wheel.fullmatch(argument), (name, line)


@every_document
def test_C41_no_page_advises_private_dns_for_the_endpoint_of_the_api(name: str) -> None:
    """It would send the default name of every public API to the private endpoint."""
    text = text_of(name)
    assert not re.search(
        r"switch (it |private DNS )?on private DNS|enable private DNS", text, re.IGNORECASE
    ), name
    for command in re.findall(r"aws ec2 create-vpc-endpoint(?:[^\n]*\\\n)*[^\n]*", text):
        if "execute-api" in command:
            assert "--no-private-dns-enabled" in command, name


def test_every_picture_is_shown_on_a_page() -> None:
    shown = {Path(link).name for path in documents() for link in links(path.read_text("utf-8"))}
    pictures = {one.name for one in (ROOT / "docs/images").iterdir() if one.suffix in {".png", ".webp"}}
    assert pictures - shown == set()


def test_records_are_numbered_have_four_parts_and_are_listed() -> None:
    records = [name for name in DOCUMENTS if name.startswith("docs/adr/")]
    listed = [link for link in links(text_of("docs/ARCHITECTURE.md")) if link.startswith("adr/")]
    numbers = [int(Path(name).name[:4]) for name in records]
    assert numbers == sorted(set(numbers)), "a number is given once; one that is not there yet is somebody's"
    for number, name in zip(numbers, records, strict=True):
        assert text_of(name).startswith(f"# {number}. ")
        assert re.findall(r"^## (.+)$", text_of(name), re.MULTILINE) == [
            "Context",
            "Decision",
            "Alternatives",
            "Consequences",
        ]
        assert name.removeprefix("docs/") in listed


def test_the_checker_of_commands_finds_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match="no command nonsense"):
        cli(["nonsense"])
    command, rest = cli(["local", "up", "--port", "0"])
    assert rest == ["--port", "0"]
    assert "--port" in options_of(command)
    assert "--nonsense" not in options_of(command)
    assert isinstance(_parser(), argparse.ArgumentParser)


def test_the_checker_of_paths_finds_what_is_wrong() -> None:
    assert exists("core/planning/planner.py")
    assert exists("layers/trainmaster/trainmaster/core/request/validation/")
    assert not exists("anner.py")
    assert not exists("scheduling/no_such.py")
