"""The manifest of a checkpoint, ``manifest.json``, which is written last.

And which checkpoints are whole by it.

It lists the files of all hosts with their sizes, so a copy that lost one on the way is found out, and it has
the hash of the index, which has those of all else.

A file counts as lost when no host has it whole: the checkpoint is torn, and the one before it is next.
When some hosts have it and others do not, nothing is lost, so going back would throw work away and the
hosts must get the same view first: that is refused.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeAlias

from training.preemptible import listed
from training.preemptible.checkpoint.store import CheckpointStore, name_of

MANIFEST = "manifest.json"
ALGORITHM = "multilinear64-sha256"
"""Name of the algorithm of the hashes, which ``hashes.py`` describes."""
INDEX, INDEX_COPY = ".metadata", "metadata"
"""Torch's index of the shards, a pickle, and its copy; the manifest lists the copy."""
_MISSING = "is missing"
_SHOWN = 3
"""The most files that a message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    step: int
    world_size: int
    hosts: int
    """Hosts with disks of their own, or machines where the store is shared."""
    guard: Mapping[str, str]
    """Options it was trained with that another attempt may not change."""
    carried: Mapping[str, float]
    """Values the caller wants back beside weights and optimizer, e.g. seconds of useful work."""
    files: Mapping[str, int]
    """Bytes of each file of all hosts by its name, without this manifest."""
    seconds: float
    """Seconds from the first file to this manifest."""
    saved_at: str
    """ISO 8601, UTC."""
    hashes: Mapping[str, str] | None = None
    """``algorithm``, and the hash of ``metadata`` by it; None if written before hashes were taken."""
    notes: Mapping[str, str] | None = None
    """Facts the caller wants before it makes a model to load this into, e.g. its precision; unlike ``guard``
    they may differ. None if written before there were notes."""

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(self.files.values())

    @property
    def bytes_per_second(self) -> float:
        """Bytes that one host wrote in a second."""
        return self.size / self.hosts / max(self.seconds, 1e-3)

    def text(self) -> bytes:
        return json.dumps({**asdict(self), "bytes": self.size}, indent=1).encode()

    @classmethod
    def parsed(cls, text: bytes) -> Self:
        """Read a manifest.

        Raises ValueError for half a file, KeyError for one that is not of this program.
        """
        document = json.loads(text)
        if not isinstance(document, dict):
            raise KeyError("step")
        known = {"hashes": None, "notes": None, **document}
        return cls(**{name: known[name] for name in cls.__slots__})


def sizes_of(storage_data: Mapping[Any, Any]) -> dict[str, int]:
    """Compute the bytes of each file of shards, of all ranks, from torch's index of them.

    A file is its items, one after the other, so it ends where the last one ends.
    """
    sizes: dict[str, int] = {}
    for place in storage_data.values():
        ends_at = place.offset + place.length
        sizes[place.relative_path] = max(sizes.get(place.relative_path, 0), ends_at)
    return dict(sorted(sizes.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """One checkpoint as one host sees it."""

    manifest: bytes | None
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    name: str
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    name: str
    reason: str
    was_published: bool = True
    """True if it has a manifest, which is written when all else is durable."""
    lacks_files: bool = False
    """True if missing files are all that is wrong: an interrupted upload leaves a checkpoint so, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A checkpoint that may neither be loaded nor be passed over."""

    name: str
    reason: str


Finding: TypeAlias = Whole | Torn | Refused
View: TypeAlias = Mapping[str, Sight]
"""The checkpoints as one host sees them, by name."""

_NOTHING = Sight(manifest=None, sizes={})


def view_of(store: CheckpointStore) -> View:
    """Read what this host sees of each checkpoint."""
    return {
        name: Sight(manifest=store.read(f"{name}/{MANIFEST}"), sizes=dict(store.sizes(name)))
        for name in store.checkpoints()
    }


def findings(views: Mapping[str, View]) -> list[Finding]:
    """Rate each checkpoint by the ``views`` of all hosts, which are by host; the newest comes first."""
    # Names have their steps in as many digits, so they sort as their steps do; a longer one is newer.
    names = {name for view in views.values() for name in view}
    newest_first = sorted(names, key=lambda name: (len(name), name), reverse=True)
    return [
        _finding(name, {host: view.get(name, _NOTHING) for host, view in views.items()})
        for name in newest_first
    ]


def is_work_lost(torn: Sequence[Torn]) -> bool:
    """Tell whether there was a whole checkpoint, where only torn ones are left.

    The only one that was ever published may lack files because its upload was interrupted: it was never
    whole where it is now, and what it held is as little as can be lost.
    """
    published = [checkpoint for checkpoint in torn if checkpoint.was_published]
    return len(published) > 1 or any(not checkpoint.lacks_files for checkpoint in published)


def _finding(name: str, sights: Mapping[str, Sight]) -> Finding:
    try:
        text, manifest = _manifest(sights)
    except FileNotFoundError:
        return Torn(name=name, reason=f"{MANIFEST} is missing", was_published=False)
    except ValueError:
        return Torn(name=name, reason=f"{MANIFEST} cannot be read")
    except KeyError:
        return Refused(name=name, reason=f"its {MANIFEST} is not one of this program")
    if (foreign := _foreign(name, manifest)) is not None:
        return Refused(name=name, reason=foreign)
    problems = {
        host: dict(_problems(manifest, sight, is_same=sight.manifest == text))
        for host, sight in sights.items()
    }
    for file in (MANIFEST, *manifest.files):
        bad = {host: found[file] for host, found in problems.items() if file in found}
        if len(bad) == len(sights):
            every = {what for found in problems.values() for what in found.values()}
            return Torn(
                name=name, reason=f"{file} {next(iter(bad.values()))}", lacks_files=every == {_MISSING}
            )
    lacking = [f"on {host} {file} {what}" for host, found in problems.items() for file, what in found.items()]
    if lacking:
        return Refused(name=name, reason=listed(lacking, most=_SHOWN, between="; "))
    return Whole(name=name, manifest=manifest)


def _foreign(name: str, manifest: Manifest) -> str | None:
    """Say why this manifest must not be used here, or None if it may be."""
    if name_of(manifest.step) != name:
        return f"its {MANIFEST} is that of {name_of(manifest.step)}"
    algorithm = manifest.hashes["algorithm"] if manifest.hashes else ALGORITHM
    if algorithm != ALGORITHM:
        return f"its hashes are by {algorithm}, and this program knows {ALGORITHM}"
    return None


def _manifest(sights: Mapping[str, Sight]) -> tuple[bytes, Manifest]:
    """Find the first manifest that can be read.

    Raises FileNotFoundError, ValueError or KeyError if none can.
    """
    texts = [sight.manifest for sight in sights.values() if sight.manifest is not None]
    if not texts:
        raise FileNotFoundError(MANIFEST)
    for text in texts[:-1]:
        try:
            return text, Manifest.parsed(text)
        except ValueError:
            continue
    return texts[-1], Manifest.parsed(texts[-1])


def _problems(manifest: Manifest, sight: Sight, *, is_same: bool) -> Iterator[tuple[str, str]]:
    """Yield (file, what is wrong with it) for one host."""
    if not is_same:
        yield MANIFEST, _MISSING if sight.manifest is None else "is another one"
    for file, size in manifest.files.items():
        actual = sight.sizes.get(file)
        if actual is None:
            yield file, _MISSING
        elif actual != size:
            yield file, f"has {actual} bytes of {size}"
