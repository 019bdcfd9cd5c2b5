"""Lines of shell in documents, each held to the parser of the program that it calls. Nothing is run."""

import importlib.util
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache, partial
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import botocore.session
import typer
from botocore import xform_name
from trainmaster_client.cli.app import app

from local.up import _parser
from tests.markdown import ROOT, codes, table, text_of

BUILTIN = frozenset(
    {"cd", "eval", "export", "git", "grep", "kill", "mkdir", "sha256sum", "sleep", "tail", "unzip", "wait"}
)
"""Programs that documents use without options worth a parser."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_WHOLE_REQUEST = "--cli-input-json"
_OPTIONS_OF_EVERY_AWS_COMMAND = frozenset({"--query", "--output", "--region", "--profile", _WHOLE_REQUEST})
_RENAMED = {"--notification-endpoint": "--endpoint"}
"""The AWS CLI has another name for a member, where its own would be that of an option of every command."""
CONTROL = "$control"
"""What documents call the ready file's control_url, which is another one at each start."""
_COPIES = frozenset({"sync", "cp", "ls"})
"""Commands of ``aws s3``, which is no service of its own."""


PROGRAMS = (".", "training", "docs/examples", "docs/examples/install")
"""Where the programs lie that documents call: the last is a folder of the reader's own."""


CLUSTER_COMMANDS = {
    "docker": {"build", "push"},
    "eksctl": {"create", "delete", "scale"},
    "helm": {"install"},
    "kubectl": {"apply", "create", "delete", "exec", "logs", "wait"},
    "terraform": {"destroy"},
}
"""Commands of programs that are not installed here. A file that they are given has to be an example."""
_MANIFESTS = ROOT / "docs/examples/kubernetes"
_MADE_BY_THE_READER = "llama-7b.yaml"


class UnknownProgramError(Exception):
    """A program that no parser here knows: add one, or say it differently."""


def lines(text: str) -> Iterator[list[str]]:
    """The words of each command, without comments, assignments in front and the folder of the program."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and _ASSIGNMENT.fullmatch(words[0]):
            words = words[1:]
        if ">" in words:
            words = words[: words.index(">")]
        if words:
            yield [Path(words[0]).name, *words[1:]]


def check(words: list[str]) -> None:
    """Raises what the program's own parser raises, AssertionError or UnknownProgramError."""
    program, *rest = words
    if program in BUILTIN:
        return
    if program not in PARSERS:
        raise UnknownProgramError(program)
    PARSERS[program]([word for word in rest if word != "&"])


def _trainmaster(words: list[str]) -> None:
    if words[:2] == ["local", "up"]:
        _parser().parse_args(words[2:])
        return
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    assert words or not hasattr(command, "commands"), f"{command.name} needs a command"
    with redirect_stdout(StringIO()):
        command.make_context(command.name, words).close()


def _make(words: list[str]) -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = [word for word in words if "=" not in word]
    assert set(named) <= targets, f"no target in {named}"


def _python(words: list[str]) -> None:
    if words[0] == "-m":
        module, options = words[1], words[2:]
        if module == "local":
            _trainmaster(["local", *options])
        elif module not in {"pip", "venv"}:
            assert importlib.util.find_spec(module) is not None, module
            _options_are_there(module, options)
        return
    assert any((ROOT / folder / words[0]).is_file() for folder in PROGRAMS), words[0]


def _options_are_there(module: str, words: list[str]) -> None:
    """Each option stands in some file of the module's package, as text or as the name of a field."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    folders = [*(spec.submodule_search_locations or [str(Path(str(spec.origin)).parent)])]
    if module.startswith(("tools.training.", "benchmarks.training.")):
        folders.append(str(ROOT / "training/config"))  # they take the training program's options, too
    sources = "".join(path.read_text() for folder in folders for path in Path(folder).rglob("*.py"))
    for word in words:
        if word.startswith("--"):
            assert word in sources or word[2:].replace("-", "_") in sources, f"{module} has no {word}"


def _torchrun(words: list[str]) -> None:
    _python([next(word for word in words if word.endswith(".py"))])


def _curl(words: list[str]) -> None:
    routes = {codes(row[0])[0].split()[1] for row in table(text_of("docs/twin.md"), "call", "fields", "")}
    (url,) = [word for word in words if word.startswith(CONTROL)]
    assert url.removeprefix(CONTROL) in routes, url
    assert "--json" in words, "control calls take application/json alone"


def _aws(words: list[str]) -> None:
    service, operation, *rest = words
    if service == "s3":
        assert operation in _COPIES, operation
        return
    model = _model(service)
    named = {xform_name(name, "-"): name for name in model.operation_names}
    assert operation in named, f"{service} has no {operation}"
    shape = model.operation_model(named[operation]).input_shape
    members = {f"--{xform_name(name, '-')}": name for name in shape.members} if shape else {}
    options = {_RENAMED.get(word, word) for word in rest if word.startswith("--")}
    given = options - _OPTIONS_OF_EVERY_AWS_COMMAND
    known = set(members) | {f"--no-{name[2:]}" for name in members}
    assert given <= known, f"{operation} has no {sorted(given - known)}"
    missing = {xform_name(name, "-") for name in (shape.required_members if shape else ())}
    is_whole = _WHOLE_REQUEST in options or {f"--{name}" for name in missing} <= given
    assert is_whole, f"{operation} needs {sorted(missing)}"


@cache
def _model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def _sam(words: list[str]) -> None:
    """In the files of the command, or of what all commands have: importing the SAM CLI takes seconds."""
    spec = importlib.util.find_spec("samcli")
    assert spec is not None
    (package,) = map(Path, spec.submodule_search_locations or ())
    folders = [package / "commands" / words[0], package / "commands/_utils", package / "cli"]
    assert folders[0].is_dir(), f"sam has no command {words[0]}"
    sources = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.glob("*.py"))
    for word in words[1:]:
        assert not word.startswith("--") or f'"{word}"' in sources, f"sam {words[0]} has no {word}"


def _pip(words: list[str]) -> None:
    assert words[0] == "install", words


def _of_clusters(program: str, words: list[str]) -> None:
    assert words[0] in CLUSTER_COMMANDS[program], f"{program} {words[0]}: none of the known commands"
    for option, file in pairwise(words):
        if option == "-f" and file != _MADE_BY_THE_READER:
            assert (ROOT / file).is_file() or (_MANIFESTS / file).is_file(), file


PARSERS: Mapping[str, Callable[[list[str]], None]] = {
    "trainmaster": _trainmaster,
    "make": _make,
    "python": _python,
    "torchrun": _torchrun,
    "curl": _curl,
    "aws": _aws,
    "pip": _pip,
    "sam": _sam,
    **{program: partial(_of_clusters, program) for program in CLUSTER_COMMANDS},
}
