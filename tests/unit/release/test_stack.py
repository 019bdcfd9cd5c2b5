"""The packaged stack: its template names files beside it, and its bytes depend on the contents alone."""

import os
import zipfile
from pathlib import Path
from typing import Any

import yaml

from local.deployment.template_yaml import read_template
from release import archives, stack
from release.trials import SAM_ASKS_FOR
from tests.markdown import ROOT

BUILT: dict[str, Any] = {
    "Metadata": {
        stack.METADATA: {"Name": "trainmaster", "LicenseUrl": "../../LICENSE", "ReadmeUrl": "../README.md"}
    },
    "Resources": {
        "Layer": {
            "Type": "AWS::Serverless::LayerVersion",
            "Metadata": {"BuildMethod": "makefile"},
            "Properties": {"ContentUri": "Layer", "RetentionPolicy": "Delete"},
        },
        "ApiFunction": {
            "Type": "AWS::Serverless::Function",
            "Properties": {"CodeUri": "ApiFunction", "Timeout": 15},
        },
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {"TableName": "trainmaster"}},
    },
}


def built(folder: Path) -> Path:
    for name, text in {
        "template.yaml": yaml.safe_dump(BUILT),
        "Layer/python/trainmaster/__init__.py": "",
        "Layer/python/trainmaster/__pycache__/__init__.cpython-313.pyc": "made by the build",
        "ApiFunction/app.py": "def handler(): ...",
        "ApiFunction/__pycache__/app.pyc": "made by chance",
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packed(folder: Path, *, home_page: str | None = None) -> Path:
    into = folder / "packed"
    into.mkdir()
    stack.pack(built(folder / "built"), into, root=ROOT, version="0.2.0", home_page=home_page)
    return into


def test_code_is_a_zip_file_beside_the_template_and_nothing_is_left_to_build(tmp_path: Path) -> None:
    into = packed(tmp_path)
    template = yaml.safe_load((into / "template.yaml").read_text())
    assert stack.code_of(template) == {"Layer": "Layer.zip", "ApiFunction": "ApiFunction.zip"}
    assert template["Resources"]["Layer"] == {
        "Type": "AWS::Serverless::LayerVersion",
        "Properties": {"ContentUri": "Layer.zip", "RetentionPolicy": "Delete"},
    }
    assert template["Resources"]["Table"] == BUILT["Resources"]["Table"]
    names = {path.name for path in into.iterdir()}
    assert names == {
        "template.yaml",
        "Layer.zip",
        "ApiFunction.zip",
        "LICENSE",
        "README.md",
        "samconfig.toml",
    }
    with zipfile.ZipFile(into / "Layer.zip") as layer:
        assert layer.namelist() == [
            "python/trainmaster/__init__.py",
            "python/trainmaster/__pycache__/__init__.cpython-313.pyc",
        ]
    with zipfile.ZipFile(into / "ApiFunction.zip") as function:
        assert function.namelist() == ["app.py"]


def test_the_metadata_has_the_version_and_files_that_are_there(tmp_path: Path) -> None:
    template = yaml.safe_load((packed(tmp_path) / "template.yaml").read_text())
    assert template["Metadata"][stack.METADATA] == {
        "Name": "trainmaster",
        "LicenseUrl": "LICENSE",
        "ReadmeUrl": "README.md",
        "SemanticVersion": "0.2.0",
    }


def test_an_address_is_named_only_where_the_publisher_has_one(tmp_path: Path) -> None:
    page = "https://example.org/trainmaster"
    template = yaml.safe_load((packed(tmp_path, home_page=page) / "template.yaml").read_text())
    application = template["Metadata"][stack.METADATA]
    assert (application["HomePageUrl"], application["SourceCodeUrl"]) == (page, page)


def test_the_template_of_this_tree_has_what_sam_asks_for_but_the_version() -> None:
    template = read_template((ROOT / "template.yaml").read_text(encoding="utf-8"))
    application = template["Metadata"][stack.METADATA]
    assert {name for name in SAM_ASKS_FOR if not application.get(name)} == {"SemanticVersion"}
    assert (ROOT / application["LicenseUrl"]).is_file()
    assert (ROOT / application["ReadmeUrl"]).is_file()
    assert set(stack.code_of(template)) == {
        name
        for name, body in template["Resources"].items()
        if body["Type"].startswith("AWS::Serverless::") and name != "Api"
    }


def test_an_archive_knows_nothing_of_times_modes_and_the_order_of_the_disk(tmp_path: Path) -> None:
    made = []
    for number, names in enumerate((("a", "b"), ("b", "a"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
            (folder / name).chmod(0o600 if number else 0o755)
            os.utime(folder / name, (1_000_000_000 + number, 1_000_000_000 + number))
        archive = tmp_path / f"{number}.zip"
        archives.write_zip(archive, archives.files_below(folder))
        made.append(archive.read_bytes())
    assert made[0] == made[1]


def test_the_sums_are_of_every_file_and_lines_that_sha256sum_reads(tmp_path: Path) -> None:
    (tmp_path / "sbom").mkdir()
    (tmp_path / "sbom" / "layer.json").write_text("{}")
    (tmp_path / "notes.md").write_text("")
    assert archives.write_sums(tmp_path) == {
        "notes.md": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "sbom/layer.json": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    }
    assert (tmp_path / "SHA256SUMS").read_text().splitlines()[1].endswith("8a  sbom/layer.json")
