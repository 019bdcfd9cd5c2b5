"""Names of container images, taken apart: a registry that only begins like an allowed one is another one."""

import re
from dataclasses import dataclass

MAX_IMAGE_CHARACTERS = 255
"""Source: SageMaker API reference, AlgorithmSpecification, TrainingImage."""
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
    """In lower case; empty: the registry that Docker takes where none is written."""
    repository: str
    tag: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        tag, digest = f":{self.tag}" if self.tag else "", f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"

    def allows(self, other: "Image") -> bool:
        """The same registry and repository; and the same tag or digest where this one has it."""
        return (
            (self.registry, self.repository) == (other.registry, other.repository)
            and self.tag in {None, other.tag}
            and self.digest in {None, other.digest}
        )


def parse_image(text: str) -> Image | None:
    """None where the text names no image."""
    found = _IMAGE.fullmatch(text) if len(text) <= MAX_IMAGE_CHARACTERS else None
    if found is None:
        return None
    first, _, rest = found["repository"].partition("/")
    registry, repository = found["registry"] or "", found["repository"]
    if not registry and rest and ("." in first or first == "localhost"):
        registry, repository = first, rest  # a host without a port reads as a part of the repository too
    elif registry and not _is_host(registry):
        return None
    return Image(registry=registry.lower(), repository=repository, tag=found["tag"], digest=found["digest"])


def _is_host(text: str) -> bool:
    """Docker's rule: a first part with a dot or a port, or ``localhost``, is a host."""
    return "." in text or ":" in text or text == "localhost"
