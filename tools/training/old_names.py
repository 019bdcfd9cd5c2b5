"""Names of the training program's modules as they were in version 0.1, for one release.

The checkout, the wheel and a copy for scripts of your own have this file; a job that uploads the folder
``training`` has not. ``training/__init__.py`` loads it where it is. See docs/adr/0088.
"""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import CodeType, ModuleType

_PREEMPTIBLE = ("adapters", "agreement", "checkpoint", "preempt")
_TOOLS = ("plan", "prepare", "prepare_images")
_READERS = ("chat", "chat_template", "documents", "inputs", "records", "tokenizer", "writer")
_BENCHMARKS = ("bench", "proof", "scaling")

MOVED = {
    **{f"training.{name}": f"training.preemptible.{name}" for name in _PREEMPTIBLE},
    **{f"training.{name}": f"tools.training.{name}" for name in _TOOLS},
    **{f"training.data.{name}": f"tools.training.{name}" for name in _READERS},
    **{f"training.{name}": f"benchmarks.training.{name}" for name in _BENCHMARKS},
    "training.checkpoint.verify": "tools.training.verify",
    "training.errors": "training.preemptible",  # in a copy without the rest of the program
    "training.interop.config_json": "training.config.config_json",
    "training.model": "training.models.transformer",
    "training.models.decoder_shape": "training.config.decoder_shape",
    "training.models.families": "training.families",
    "training.options": "training.config",
    "training.ranks.memory": "training.parallel.memory",
    "training.ranks.tensor_parallel": "training.parallel.tensor_parallel",
    "training.vision.shape": "training.config.vision_shape",
}
"""New names by the old ones; what is in a package moved with it, unless it has a line of its own."""


def new_name(name: str) -> str | None:
    """Return the new name of a module, or None if this is no old name."""
    around, inside = name, ""
    while "." in around:
        if around in MOVED:
            return MOVED[around] + inside
        around, _, last = around.rpartition(".")
        inside = f".{last}{inside}"
    return None


class OldNames(MetaPathFinder, InspectLoader):
    """Gives the module itself under both names, so a class is one class whichever name it is imported by."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}
        self._warned: set[str] = set()

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002  the import system's
    ) -> ModuleSpec | None:
        name = new_name(fullname)
        if name is None or _is_really_there(fullname, path):
            return None
        current_spec = find_spec(name)
        if current_spec is None:
            return None
        spec = ModuleSpec(fullname, self, origin=current_spec.origin)
        spec.submodule_search_locations = current_spec.submodule_search_locations
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._warned_name(spec.name))
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, which the import system replaced; its code has run already."""
        if module.__spec__ is not None:
            module.__spec__ = self._specs.pop(module.__spec__.name)

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code that ``python -m`` runs."""
        name = self._warned_name(fullname)
        loader = _loader(name)
        return loader.get_code(name) if loader else None

    def _warned_name(self, fullname: str) -> str:
        """Return the new name, with one warning for each package or module that moved."""
        name = new_name(fullname) or fullname
        if fullname in MOVED and fullname not in self._warned:
            self._warned.add(fullname)
            text = f"{fullname} is now {name}; the old name goes with the next release"
            warnings.warn(text, FutureWarning, stacklevel=3)
        return name

    def get_source(self, fullname: str) -> str | None:
        name = new_name(fullname) or fullname
        loader = _loader(name)
        return loader.get_source(name) if loader else None


def _is_really_there(fullname: str, path: Sequence[str] | None) -> bool:
    """Tell whether a folder copied by an earlier version has the module by its old name.

    A folder that git emptied but for its ``__pycache__`` is none: it has no file that would be loaded.
    """
    if fullname in MOVED:
        spec = PathFinder.find_spec(fullname, path)
        return spec is not None and spec.origin is not None
    parent = fullname.rpartition(".")[0]
    return sys.modules[parent].__name__ == parent


def _loader(name: str) -> InspectLoader | None:
    spec = find_spec(name)
    return spec.loader if spec and isinstance(spec.loader, InspectLoader) else None


def install() -> None:
    """Answer the old names from now on; a second call changes nothing."""
    if not any(type(finder).__name__ == OldNames.__name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, OldNames())
