"""The packaged stack: template.yaml with its code beside it, for those who have the SAM CLI and no checkout.

``sam build`` has made the folders; each becomes a zip file, which ``sam deploy`` and ``sam package`` upload
as it is. Nothing in it belongs to one account: S3 comes in when its user deploys or publishes.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from release.archives import files_below, write_zip

Document = dict[str, Any]

METADATA = "AWS::ServerlessRepo::Application"
_LAYER = "AWS::Serverless::LayerVersion"
CODE = {"AWS::Serverless::Function": "CodeUri", _LAYER: "ContentUri"}
"""Property that names the code, by type of resource."""
BESIDE = ("LICENSE", "README.md", "samconfig.toml")
"""Files of the checkout that go with the template: the metadata names the first two, SAM reads the third."""
_LONGEST_LINE = 100_000


def pack(built: Path, into: Path, *, root: Path, version: str, home_page: str | None) -> None:
    """Write template, code and what goes with it.

    Args:
        built: What ``sam build`` wrote.
        into: An empty folder.
        root: The checkout.
        version: Becomes the application's semantic version.
        home_page: Address of the publisher's page and sources, if there is one.
    """
    template = yaml.safe_load((built / "template.yaml").read_text(encoding="utf-8"))
    for name, folder in code_of(template).items():
        is_layer = template["Resources"][name]["Type"] == _LAYER
        write_zip(into / f"{name}.zip", files_below(built / folder, with_bytecode=is_layer))
    packed = packaged(template, version=version, home_page=home_page)
    text = yaml.safe_dump(packed, sort_keys=False, width=_LONGEST_LINE)
    (into / "template.yaml").write_text(text, encoding="utf-8")
    for name in BESIDE:
        shutil.copyfile(root / name, into / name)


def code_of(template: Document) -> dict[str, str]:
    """Return where each resource with code says it is, by logical id."""
    by_resource = {name: (CODE.get(body["Type"]), body) for name, body in template["Resources"].items()}
    return {name: body["Properties"][key] for name, (key, body) in by_resource.items() if key is not None}


def packaged(template: Document, *, version: str, home_page: str | None) -> Document:
    """The template whose code is zip files, and whose metadata has the version."""
    resources = {name: _with_zip(name, body) for name, body in template["Resources"].items()}
    application = template["Metadata"][METADATA] | _files() | {"SemanticVersion": version}
    if home_page is not None:
        application |= {"HomePageUrl": home_page, "SourceCodeUrl": home_page}
    return template | {"Metadata": template["Metadata"] | {METADATA: application}, "Resources": resources}


def _files() -> Mapping[str, str]:
    """Beside this template; ``sam build`` had them where the checkout is."""
    return {"LicenseUrl": "LICENSE", "ReadmeUrl": "README.md"}


def _with_zip(name: str, body: Document) -> Document:
    key = CODE.get(body["Type"])
    if key is None:
        return body
    kept = {word: value for word, value in body.items() if word != "Metadata"}  # how to build what is built
    return kept | {"Properties": body["Properties"] | {key: f"{name}.zip"}}
