"""Checks a document against the schema of its CustomResourceDefinition, as its publisher ships it.

Rules in CEL (``x-kubernetes-validations``) are the API server's own and not evaluated. Fields that a schema
does not have are mistakes here, as ``kubectl --validate=strict`` says them; the server alone drops them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.errors.missing_packages import install_hint
from trainmaster_client.files.yaml_documents import read_yaml_documents
from trainmaster_client.manifests.job_request import Document

_LARGEST_BYTES = 16 * 1024 * 1024
"""Definitions with the schema of a pod in them have up to 1 MB each, and a file may hold several."""


def crd_mistakes(document: Document, crd: Mapping[str, Any]) -> list[str]:
    """Return the mistakes, each with its field; empty if the document is valid.

    Raises:
        InvalidArgumentError: The definition is of another kind or version, or jsonschema is not installed.
    """
    try:
        # An extra. OpenAPI 3.0 is a dialect of draft 4.
        from jsonschema import Draft4Validator  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as error:
        raise InvalidArgumentError(
            "--crd needs the package jsonschema.", hint=install_hint("manifest")
        ) from error
    validator = Draft4Validator(_strict(_schema(document, crd), is_root=True))
    errors = sorted(
        validator.iter_errors(document), key=lambda error: [str(part) for part in error.absolute_path]
    )
    return [
        f"{'.'.join(str(part) for part in error.absolute_path) or 'document'}: {error.message}"
        for error in errors
    ]


def read_crd(file: Path) -> Mapping[str, Any]:
    """Read the definition from a YAML file. Raises InvalidArgumentError."""
    hint = "Name the YAML file of a CustomResourceDefinition with --crd."
    try:
        documents = read_yaml_documents(file.read_bytes(), largest=_LARGEST_BYTES)
    except (OSError, yaml.YAMLError) as error:
        raise InvalidArgumentError(f"{file} cannot be read: {error}.", hint=hint) from error
    for document in documents:
        if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
            return document
    raise InvalidArgumentError(f"{file} has no CustomResourceDefinition.", hint=hint)


def _schema(document: Document, crd: Mapping[str, Any]) -> Document:
    spec = crd["spec"]
    group, _, version = document["apiVersion"].rpartition("/")
    for served in spec["versions"]:
        if (spec["group"], spec["names"]["kind"], served["name"]) == (group, document["kind"], version):
            return dict(served["schema"]["openAPIV3Schema"])
    raise InvalidArgumentError(
        f"The definition is of {spec['names']['kind']} in {spec['group']},"
        f" and the manifest is a {document['kind']} of {document['apiVersion']}.",
        hint="Name the definition of that kind and version with --crd.",
    )


def _strict(schema: Document, *, is_root: bool = False) -> Document:
    """Refuse fields that the schema does not name; only the server knows the document's own metadata."""
    changed = dict(_changed(schema, is_root=is_root))
    is_closed = "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields")
    return changed | ({"additionalProperties": False} if is_closed else {})


def _changed(schema: Document, *, is_root: bool) -> Iterator[tuple[str, Any]]:
    for word, value in schema.items():
        if word == "properties":
            yield (
                word,
                {
                    name: child if is_root and name == "metadata" else _strict(child)
                    for name, child in value.items()
                },
            )
        elif word in {"items", "additionalProperties"} and isinstance(value, dict):
            yield word, _strict(value)
        else:
            yield word, value
