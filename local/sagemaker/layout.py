"""The folder that stands for a container's /opt/ml, and how paths there are asked to the container."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from local.sagemaker.spec import DEFAULT_CHECKPOINT_PATH

ML_ROOT = "/opt/ml"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Paths under ``root``, which stands for the root of a host's file system."""

    root: Path
    checkpoint_path: str = DEFAULT_CHECKPOINT_PATH
    """CheckpointConfig.LocalPath as the request gives it."""
    is_mounted: bool = False
    """The container sees ``opt`` as its /opt; else it gets to know where the folders are here."""

    @property
    def opt(self) -> Path:
        return self.root / "opt"

    @property
    def ml(self) -> Path:
        return self.opt / "ml"

    @property
    def packages(self) -> Path:
        """Folder for what pip installs in the job."""
        return self.root / "packages"

    @property
    def code(self) -> Path:
        return self.ml / "code"

    @property
    def model(self) -> Path:
        return self.ml / "model"

    @property
    def input(self) -> Path:
        return self.ml / "input"

    @property
    def config(self) -> Path:
        return self.input / "config"

    @property
    def output(self) -> Path:
        return self.ml / "output"

    @property
    def output_data(self) -> Path:
        return self.output / "data"

    @property
    def failure(self) -> Path:
        return self.output / "failure"

    @property
    def checkpoints(self) -> Path:
        return self._inside(self.checkpoint_path)

    def channel(self, name: str) -> Path:
        return self.input / "data" / name

    def make(self) -> None:
        for folder in (self.code, self.model, self.config, self.output_data, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        self.channel("").mkdir(exist_ok=True)

    def told(self, path: Path) -> str:
        """Return the container's name of a path here."""
        if self.is_mounted and path.is_relative_to(self.opt):
            return f"/{path.relative_to(self.root).as_posix()}"
        return str(path)

    def localized(self, text: str) -> str:
        """Return the text with every path under /opt/ml, or to the checkpoints, as the container names it."""
        return self._paths.sub(lambda match: self.told(self._inside(match[0])), text)

    def localized_map(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {name: self.localized(text) for name, text in texts.items()}

    @cached_property
    def _paths(self) -> re.Pattern[str]:
        """Pattern of whole path parts only: neither /home/opt/ml nor /opt/mlflow."""
        roots = "|".join(re.escape(root) for root in (self.checkpoint_path.rstrip("/"), ML_ROOT) if root)
        return re.compile(rf"(?<![\w./-])(?:{roots})(?![\w.-])")

    def _inside(self, path: str) -> Path:
        return self.root / PurePosixPath(path).relative_to("/")
