"""Let torchvision be imported beside a torch that its kernels were not built for.

PyPI's torchvision has kernels for GPUs. Beside a CPU build of torch they cannot be loaded, and the import
ends in "operator torchvision::nms does not exist": torchvision registers what some operators return, and only
its kernels declare them. Transforms need no kernel, so declaring these operators is enough. Where the
kernels load, as in SageMaker's containers, nothing is declared.

Nothing of torch or torchvision is imported before `declare` is called.
"""

import importlib.util
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

_OPERATORS = tuple(
    f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor" for name in ("nms", "qnms")
)
"""Operators to declare; qnms is there since torchvision 0.28, and declaring an unused one does no harm."""
_declared: list[Any] = []
"""Library objects: a declaration lives as long as the object that made it."""
_lock = Lock()


def declare() -> None:
    """Declare the operators, if need be; call it before torchvision is imported, as often as you like."""
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        return
    import torch  # noqa: PLC0415  see above

    kernels = Path(spec.submodule_search_locations[0]) / "_C.so"
    with _lock, suppress(ImportError, OSError):  # what torchvision itself catches, when it loads them
        torch.ops.load_library(str(kernels))  # type: ignore[no-untyped-call]  # torch's
    with _lock:
        if hasattr(torch.ops.torchvision, "nms"):
            return
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]  # torch's
        for operator in _OPERATORS:
            library.define(operator)  # type: ignore[no-untyped-call]  # torch's
        _declared.append(library)
