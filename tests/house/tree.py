"""Modules of the tree as their files say: sizes, functions, and who imports whom."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SOURCE_FOLDERS = ("layers/trainmaster", "client", "")
"""What Python's path begins with; the first that fits names the module."""
GENERATED = frozenset({"program_shapes", "request_shapes"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    name: str
    path: str
    """From the root of the tree."""
    lines: int
    syntax: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @property
    def leaf(self) -> str:
        return self.name.rpartition(".")[2]

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.syntax) if isinstance(node, Function))


def read_modules(root: Path, paths: Iterable[str]) -> dict[str, Module]:
    """By name; ``paths`` are those of Python files, from the root."""
    found = {}
    for path in paths:
        text = (root / path).read_text(encoding="utf-8")
        name = module_name(path)
        found[name] = Module(name=name, path=path, lines=len(text.splitlines()), syntax=ast.parse(text))
    return found


def module_name(path: str) -> str:
    source = next(folder for folder in SOURCE_FOLDERS if path.startswith(folder))
    plain = path.removeprefix(source).lstrip("/").removesuffix(".py")
    return plain.replace("/", ".").removesuffix(".__init__")


def body_lines(function: Function) -> int:
    """From ``def`` to the end, without the docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


def parameters(function: Function) -> list[str]:
    """Those a caller gives, by position or by name."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return [name for name in names if name not in {"self", "cls"}]


def importers(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Who imports a module, by its name.

    Whoever takes a name from a package that has it from one of its modules imports that module: the package
    is no importer, it only passes on.
    """
    origins = {
        (name, alias): origin
        for name, module in modules.items()
        if module.is_package
        for origin, alias in _imported(module, modules)
        if alias and origin.startswith(f"{name}.")
    }
    found: dict[str, set[str]] = defaultdict(set)
    for name, module in modules.items():
        if module.is_package:
            continue
        for origin, alias in _imported(module, modules):
            found[origins.get((origin, alias), origin)].add(name)
    return {name: who - {name} for name, who in found.items()}


def _imported(module: Module, modules: Mapping[str, Module]) -> Iterator[tuple[str, str]]:
    """A module of the tree that is imported, and the name taken from it ('' for the module itself)."""
    for node in ast.walk(module.syntax):
        if isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names if one.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, module)
            for one in node.names:
                whole = f"{base}.{one.name}"
                if whole in modules:
                    yield whole, ""
                elif base in modules:
                    yield base, one.name


def _base(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    package = module.name if module.is_package else module.name.rpartition(".")[0]
    parts = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)
