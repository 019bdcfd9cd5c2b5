"""Makes every `import torchvision` of this environment work beside a torch without GPU libraries.

    python local/setup/torchvision_hook.py

Why it would not: `training/vision/torchvision_schema.py`. That module helps the training program, but here
transformers and lightning import torchvision, too, as soon as it is installed. So the environment gets a file
that Python reads at each start (site, `*.pth`): it waits for the import of torchvision.
"""

import sysconfig
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_NAME = "_torchvision_beside_cpu_torch"
_HOOK = '''"""Written by local/setup/torchvision_hook.py, which says why."""

import importlib.util
import sys


class _BeforeTorchvision:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torchvision":
            sys.meta_path.remove(_BeforeTorchvision)
            spec = importlib.util.spec_from_file_location("_torchvision_schema", {schema!r})
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            sys.modules[spec.name] = module
            module.declare()
        return None


sys.meta_path.insert(0, _BeforeTorchvision)
'''


def main() -> None:
    schema = str(_ROOT / "training/vision/torchvision_schema.py")
    place = Path(sysconfig.get_path("purelib"))
    (place / f"{_NAME}.py").write_text(_HOOK.format(schema=schema))
    (place / f"{_NAME}.pth").write_text(f"import {_NAME}\n")


if __name__ == "__main__":
    main()
