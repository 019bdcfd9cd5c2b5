"""The training program packed as the source archive of a job."""

import io
import tarfile
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from trainmaster_client.cli.training_code import training_code


def training_archive(*, tools: bool = False) -> bytes:
    """Pack the training program as a job has it, or the tools with all that they import."""
    packed = io.BytesIO()
    with TemporaryDirectory() as name, tarfile.open(fileobj=packed, mode="w:gz") as tar:
        folder = Path(name)
        with redirect_stdout(io.StringIO()):
            training_code(folder, tools=tools)
            if tools:
                training_code(folder, launcher_only=True)
        for path in sorted(folder.rglob("*.py")):
            tar.add(path, str(path.relative_to(folder)))
    return packed.getvalue()
