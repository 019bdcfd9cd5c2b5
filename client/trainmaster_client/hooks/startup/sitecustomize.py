"""Python imports this before a program that ``trainmaster run`` starts, instead of another sitecustomize.

It registers the hooks when the program imports botocore, and then runs the sitecustomize that would have been
imported without it. A Python of another environment finds the client beside this file. What goes wrong
with the hooks is printed on standard error: the program runs as it would have run.
"""

import importlib.machinery
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  pathlib is not imported by most programs
_PACKAGE = os.path.dirname(os.path.dirname(_HERE))  # noqa: PTH120


class _BeforeBotocore:
    """A finder that finds nothing; it notices that botocore's sessions are about to be imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN205, ARG004
        if name == "botocore.session" and _BeforeBotocore in sys.meta_path:
            sys.meta_path.remove(_BeforeBotocore)
            _hook()


def _hook() -> None:
    from importlib.util import find_spec  # noqa: PLC0415  each program begins with this file, few come to here

    try:
        spec = find_spec("trainmaster_client")
        if spec is None or spec.origin is None:  # a folder of that name is no client
            _load_client()
        from trainmaster_client.hooks.process_hooks import switch_on_from_environment  # noqa: PLC0415

        switch_on_from_environment()
    except Exception as error:  # noqa: BLE001  whatever it is, the program comes first
        print(f"trainmaster: what this program trains bypasses the queue: {error!r}", file=sys.stderr)


def _load_client() -> None:
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415  likewise

    spec = spec_from_file_location(
        "trainmaster_client",
        os.path.join(_PACKAGE, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[_PACKAGE],
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["trainmaster_client"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


def _run_the_next() -> None:
    """Run the sitecustomize that Python would have run; its exceptions are left for Python to report."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _HERE]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec  # noqa: PLC0415  likewise

    sys.modules["sitecustomize"] = module = module_from_spec(spec)
    spec.loader.exec_module(module)


if os.environ.get("TRAINMASTER_RUN"):
    sys.meta_path.insert(0, _BeforeBotocore)
_run_the_next()
