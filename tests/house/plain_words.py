"""Plain words in code: docstrings that are sentences, loop variables and names that say what they hold.

Only product code is read. A docstring passes by its first word, which is a weak test on purpose: it finds
the fragments ("Of the function's timeout", "As of a waiting job") and leaves to a reader whether a sentence
is true.
"""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tests.house.tree import GENERATED, Module

FRAGMENT_STARTS = frozenset(
    {"of", "as", "who", "what", "with", "without", "where", "whose", "none:", "for", "by", "from", "to", "in"}
    | {"until", "unless", "nobody", "so"}
)
VAGUE_LOOP_VARIABLES = frozenset({"one", "each", "item", "it", "this", "thing"})
LOOP_VARIABLES_WITH_A_REASON: Mapping[str, str] = MappingProxyType({})
"""``path:name`` of a vague loop variable that is the best name, and why; at most 20."""
VAGUE_NAMES = frozenset({"one", "found", "asked", "told", "said", "some", "more", "much"})
"""Names that local variables and parameters do not have."""
PUBLIC_NAMES = frozenset(
    {
        "benchmarks/replay/targets.py:asked",
        "benchmarks/training/proof/jobs.py:said",
        "benchmarks/training/scaling/efficiency.py:told",
        "client/trainmaster_client/account_check/facts.py:said",
        "client/trainmaster_client/doctor/findings.py:found",
        "client/trainmaster_client/errors/__init__.py:found",
        "client/trainmaster_client/simulate/comparison/start_hours.py:asked",
        "client/trainmaster_client/simulate/engine/plain_pool.py:found",
        "client/trainmaster_client/simulate/engine/team_budgets.py:told",
        "layers/trainmaster/trainmaster/core/lifecycle/steps.py:told",
        "layers/trainmaster/trainmaster/core/outbox/messages.py:found",
        "layers/trainmaster/trainmaster/core/row_differences.py:found",
        "layers/trainmaster/trainmaster/core/rules/forms.py:asked",
        "local/control.py:told",
        "local/engine/dynamodb/writes.py:found",
    }
)
"""Fields and keyword parameters of before that others write, stored ones among them: ``path:name``."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Place:
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.text}"


def fragments(modules: Iterable[Module]) -> list[Place]:
    """Return the docstrings, and the notes under fields and constants, that begin like a fragment."""
    return sorted(
        Place(path=module.path, line=line, text=text.splitlines()[0])
        for module in modules
        for line, text in docstrings(module.syntax)
        if text.split()[0].rstrip(",.;").lower() in FRAGMENT_STARTS
    )


def docstrings(syntax: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string that stands as a statement and is not empty."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str) and text.strip():
                yield node.lineno, text.strip()


def vague_loop_variables(modules: Iterable[Module]) -> list[Place]:
    """Return the targets of loops and comprehensions that are named ``one``, ``it`` and the like."""
    return sorted(
        Place(path=module.path, line=name.lineno, text=name.id)
        for module in modules
        for name in _loop_variables(module.syntax)
        if name.id in VAGUE_LOOP_VARIABLES and f"{module.path}:{name.id}" not in LOOP_VARIABLES_WITH_A_REASON
    )


def _loop_variables(syntax: ast.Module) -> Iterator[ast.Name]:
    for loop in ast.walk(syntax):
        if isinstance(loop, ast.For | ast.AsyncFor | ast.comprehension):
            yield from (name for name in ast.walk(loop.target) if isinstance(name, ast.Name))


def vague_names(modules: Iterable[Module]) -> list[Place]:
    """Return the variables and parameters whose name is on the list of vague ones."""
    return sorted(
        Place(path=module.path, line=line, text=name)
        for module in modules
        for line, name in _bound_names(module.syntax)
        if name in VAGUE_NAMES and f"{module.path}:{name}" not in PUBLIC_NAMES
    )


def _bound_names(syntax: ast.Module) -> Iterator[tuple[int, str]]:
    loops = {id(name) for name in _loop_variables(syntax)}
    for node in ast.walk(syntax):
        if isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in loops:
            yield node.lineno, node.id


def comment_share(sources: Iterable[str]) -> float:
    """Return the lines that hold a comment as a share of the lines that are not blank."""
    comments = lines = 0
    for source in sources:
        lines += sum(1 for line in source.splitlines() if line.strip())
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        comments += len({token.start[0] for token in tokens if token.type == tokenize.COMMENT})
    return comments / lines if lines else 0.0


def statements(syntax: ast.Module) -> int:
    """Count the statements of a module, docstrings and notes under fields left out."""
    notes = sum(1 for _ in docstrings(syntax))
    return sum(1 for node in ast.walk(syntax) if isinstance(node, ast.stmt)) - notes


def written(modules: Mapping[str, Module]) -> list[Module]:
    """Return the modules that people write, without the generated ones."""
    return [module for module in modules.values() if module.leaf not in GENERATED]
