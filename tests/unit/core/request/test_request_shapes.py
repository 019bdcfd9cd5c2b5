import importlib.util
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from types import ModuleType

import pytest
from trainmaster.core.request.request_shapes import SHAPES

LAYER = Path(__file__).parents[4] / "layers" / "trainmaster"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", LAYER / "generate_request_shapes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_what_the_installed_botocore_gives() -> None:
    written = generator().TARGET.read_text(encoding="utf-8")
    assert generator().generate() == written, "run python layers/trainmaster/generate_request_shapes.py"


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{Lu}+",
        r"[\p{L}]",
        r"[a&&b]",
        r"[a[b]]",
        "a++",
        r"(?<name>a)",
        r"\bword",
        r"[\p{L}\p{N}\p{Z}_\d]",
        "^a$",
    ],
)
def test_the_generator_stops_at_a_pattern_it_does_not_know(pattern: str) -> None:
    module = generator()
    with pytest.raises(module.UntranslatableError):
        module.translate(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        pytest.param(r"\d{12}", "\u0661" * 12, False, id="digits are ASCII in the model"),
        pytest.param(r"\w+", "\u00e4", False, id="words are ASCII in the model"),
        pytest.param(r".*", "a\rb", False, id="a dot stops at a carriage return"),
        pytest.param(r"[\S\s]*", "a\nb\u2028", True, id="everything"),
        pytest.param(r"[\p{Alnum}\-]+", "aZ-9", True, id="alphanumeric"),
        pytest.param(r"[\p{Alnum}\-]+", "\u00e4", False, id="alphanumeric is ASCII"),
        pytest.param(r"[^/]+\.(?:a|b)(?<!-)", "x.b", True, id="groups, negation, look-behind"),
    ],
)
def test_a_translated_pattern_means_what_the_model_means(pattern: str, text: str, *, matches: bool) -> None:
    assert bool(re.fullmatch(generator().translate(pattern), text)) is matches


def test_the_pattern_of_tags_takes_exactly_letters_numbers_separators_and_eight_signs() -> None:
    pattern = re.compile(SHAPES["TagValue"]["pattern"])
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        allowed = unicodedata.category(character)[0] in "LNZ" or character in "_.:/=+-@"
        assert bool(pattern.fullmatch(character)) == allowed, hex(code)


def test_the_table_is_cheap_to_import() -> None:
    code = (
        "import time, typing; start = time.process_time();"
        "import trainmaster.core.request.request_shapes; print(time.process_time() - start)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", code], cwd=LAYER, capture_output=True, check=True)
        for _ in range(3)
    ]
    assert min(float(run.stdout) for run in runs) < 0.010
