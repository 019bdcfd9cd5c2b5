"""Run by the scanners' own Python: manifests and Terraform files by path; on stdout their mistakes."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import hcl2  # type: ignore[import-not-found]  # of .venv-scan, where checkov brings it
import kubernetes_validate  # type: ignore[import-not-found]  # of .venv-scan
import yaml

KUBERNETES = "1.34"
"""The version of the example's cluster, as its cluster.yaml and main.tf have it."""


def mistakes(path: Path) -> Iterator[str]:
    """Yield what the schemas of Kubernetes, or the grammar of Terraform, refuse in a file."""
    if path.suffix == ".tf":
        try:
            with path.open(encoding="utf-8") as file:
                hcl2.load(file)
        except Exception as error:  # noqa: BLE001  lark has a tree of its own, and all of it is a mistake
            yield str(error).splitlines()[0]
        return
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        try:
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f"{'.'.join(map(str, error.path))}: {error.message}"
        except kubernetes_validate.SchemaNotFoundError as error:
            yield f"no schema: {error.kind}"


json.dump({name: list(mistakes(Path(name))) for name in sys.argv[1:]}, sys.stdout)
