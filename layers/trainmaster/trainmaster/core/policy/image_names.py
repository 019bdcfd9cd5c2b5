"""Names of container images in parts: a registry that only begins like an allowed one is another one."""

import re
from dataclasses import dataclass

MAX_IMAGE_CHARACTERS = 255
"""Longest name of an image. Source: SageMaker API reference, AlgorithmSpecification, TrainingImage."""
# Grammar of references: github.com/distribution/reference, reference.go.
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    r"(?:(?P<registry>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*(?::[0-9]{1,5})?)/)??"
    rf"(?P<repository>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[a-z0-9]+:[0-9a-f]{32,128}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    registry: str
    """Registry in lower case; empty where none is written, which Docker reads as its default registry."""
    repository: str
    tag: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        tag, digest = f":{self.tag}" if self.tag else "", f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"

    def allows(self, other: "Image") -> bool:
        """Tell whether the other has the registry and repository of this one.

        Its tag and digest must match too, if this one names them.
        """
        return (
            (self.registry, self.repository) == (other.registry, other.repository)
            and self.tag in {None, other.tag}
            and self.digest in {None, other.digest}
        )


def parse_image(text: str) -> Image | None:
    """Return the parts of an image's name; None if the text does not name an image."""
    match = _IMAGE.fullmatch(text) if len(text) <= MAX_IMAGE_CHARACTERS else None
    if match is None:
        return None
    first, _, rest = match["repository"].partition("/")
    registry, repository = match["registry"] or "", match["repository"]
    if not registry and rest and ("." in first or first == "localhost"):
        registry, repository = first, rest  # a host without a port reads as a part of the repository too
    elif registry and not _is_host(registry):
        return None
    return Image(registry=registry.lower(), repository=repository, tag=match["tag"], digest=match["digest"])


def _is_host(text: str) -> bool:
    """Tell whether Docker reads a first part as a host: it has a dot or a port, or is ``localhost``."""
    return "." in text or ":" in text or text == "localhost"
