"""A name that a package defines is no name of one of its modules."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = (
    "layers/trainmaster/trainmaster",
    "client/trainmaster_client",
    "training",
    "local",
    "tools",
    "benchmarks",
    "demos",
)
PACKAGES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py"))


def names_of(tree: ast.Module) -> set[str]:
    """Return the functions, classes, imports and variables of a module's top level.

    A name imported from the module that is called like it is left out: that module is loaded by then, and
    only the first import of a module sets its name in the package.
    """
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            module = (getattr(node, "module", None) or "").rpartition(".")[2]
            names.update(alias.asname or alias.name for alias in node.names if alias.name != module)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(
                leaf.id for target in targets for leaf in ast.walk(target) if isinstance(leaf, ast.Name)
            )
    return names


def shadowed(package: Path) -> set[str]:
    """Return the names of a package that the first import of a module of that name replaces."""
    modules = {
        path.stem
        for path in package.parent.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    return names_of(ast.parse(package.read_text(encoding="utf-8"))) & modules


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_no_module_takes_the_place_of_a_name_of_its_package(package: Path) -> None:
    assert not shadowed(package)


def test_a_function_beside_a_module_of_its_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "signed.py").touch()
    package = tmp_path / "__init__.py"
    package.write_text("LIMIT, WORD = 1, 2\ndef signed(): ...\n", encoding="utf-8")
    assert shadowed(package) == {"signed"}
