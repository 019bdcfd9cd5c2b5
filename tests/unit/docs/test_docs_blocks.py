"""Every block of code in the documents is claimed: a file that is tested, or lines that a parser has read.

A block of Python, YAML or JSON is, byte by byte, a file below docs/examples. The tests of those files are
beside the code they show; ``CHECKED_BY`` says where. A line of shell is read by the parser of its program
(``tests/shell.py``).
"""

import difflib
import json
from pathlib import Path

import pytest
import yaml
from trainmaster.core.policy import parse_policy
from trainmaster.core.request.validation import check_request
from typer.exceptions import TyperException

from tests import shell
from tests.markdown import ROOT, blocks, documents, links, text_of

EXAMPLES = ROOT / "docs/examples"
FILES = {
    path.relative_to(EXAMPLES).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(EXAMPLES.rglob("*"))
    if path.is_file() and "__pycache__" not in path.parts
}
SAVED = {
    *FILES.values(),
    *(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "docs/guides").rglob("*.*")
        if path.suffix != ".md"
    ),
}
DOCUMENTS = [path.relative_to(ROOT).as_posix() for path in documents()]
SHELL = ("bash", "sh")
IN_FILES = ("python", "yaml", "json", "toml")

CHECKED_BY = {
    "pipelines/": "tests/e2e/test_pipelines.py",
    "sweeps/": "tests/e2e/test_sweeps.py",
    "airflow/": "tests/airflow/test_guide.py",
    "elastic/": "tests/faults/test_elastic_requests.py",
    "assistants/": "tests/unit/client/assistants/test_client_configuration.py",
    "chat/": "tests/template/test_chat_recipe.py",
    "doors/": "tests/e2e/test_examples.py",
    "grafana/": "tests/template/test_grafana_dashboard.py",
    "install/": "tests/e2e/test_first_ten_minutes.py",
    "jobs/": "tests/integration/client/test_training_guides.py",
    "kubernetes/Dockerfile": "tests/template/test_cluster_examples.py",
    "kubernetes/cluster.yaml": "tests/template/test_cluster_examples.py",
    "kubernetes/data-from-s3.yaml": "tests/template/test_cluster_examples.py",
    "kubernetes/efs.yaml": "tests/template/test_cluster_examples.py",
    "kubernetes/node-tools.yaml": "tests/template/test_cluster_examples.py",
    "kubernetes/request.json": "tests/template/test_cluster_examples.py",
    "kubernetes/terraform/": "tests/template/test_cluster_examples.py",
    "kubernetes/fsx.yaml": "tests/template/test_kubernetes_examples.py",
    "kubernetes/runtime.yaml": "tests/template/test_kubernetes_examples.py",
    "notebooks/": "tests/integration/client/handles/test_guide.py",
    "recipes/": "tests/integration/client/test_recipes.py",
    "job.json": "tests/e2e/test_examples.py",
    "long.json": "tests/e2e/test_examples.py",
    "policies/": "tests/unit/docs/test_docs_blocks.py",
    "step_functions/": "tests/integration/client/test_step_functions_guide.py",
    "training/accelerate_loop.py": "tests/integration/training/test_foreign_scripts.py",
    "training/checkpoints.py": "tests/integration/training/checkpoint/test_guide.py",
    "training/hf_trainer.py": "tests/integration/training/test_foreign_scripts.py",
    "training/lightning_trainer.py": "tests/integration/training/test_foreign_scripts.py",
    "training/metric_names.py": "tests/unit/training/test_documentation.py",
    "training/own_loop.py": "tests/integration/training/test_own_loop.py",
    "training/plain_loop.py": "tests/integration/training/test_own_loop.py",
    "training/precise_sum.py": "tests/integration/training/test_guides.py",
    "training/preemptible.py": "tests/integration/training/test_preemption_guide.py",
    "training/secret_by_name.py": "tests/integration/training/test_secret_guide.py",
    "training/sharded_loop.py": "tests/integration/training/test_guides.py",
    "training/write_questions.py": "tests/integration/training/test_instructions_guide.py",
    "training/write_tokens.py": "tests/unit/docs/test_docs.py",
    "tutorial/": "tests/e2e/test_transcripts.py",
    "worlds/": "tests/unit/local/test_world_file.py",
}
"""The test that runs a file, or all files of a folder."""

SHOWN = {
    ("docs/ARCHITECTURE.md", "mermaid"): "tests/unit/docs/test_docs_tables.py",
    ("docs/concepts.md", "mermaid"): "tests/unit/docs/test_concepts.py",
    ("docs/events.md", "json"): "tests/unit/core/outbox/test_events_docs.py",
    ("docs/training/cpu.md", "text"): "tests/unit/training/ranks/test_cpu.py",
    ("docs/training/data.md", "json"): "tests/unit/training/test_documentation.py",
    ("docs/training/s3.md", "json"): "tests/unit/training/test_storage_guides.py",
    ("docs/training/s3.md", "text"): "tests/unit/training/test_storage_guides.py",
}
"""Blocks that are no files of their own, and the test that compares them with what the code does."""

FRAGMENTS = {
    "docs/training/README.md": "leaves out what pretrain.md has in full",
    "docs/training/launcher.md": "one line or argument more in a program of the reader",
    "docs/training/s3.md": "the arguments that differ; pretrain.md has a whole program",
    "docs/training/weights.md": "the arguments that differ; finetune.md has a whole program",
}
"""Pages whose Python cannot run alone, and why; test_docs.py compiles it and looks for what it imports."""

WORDS = {
    ("docs/guides/account-check.md", "text"): "what a line looks like; what AWS says nobody knows yet",
    ("docs/guides/scale.md", "text"): "profiles of the AWS configuration, which is not ours",
    ("docs/idle.md", "text"): "what the message of an event says",
}


def changes(before: str, after: str, *, around: int = 0) -> str:
    """What a program of the reader's becomes, as a page shows it: dots stand for what is left out."""
    old, new = (FILES[f"{name}.py"].splitlines() for name in (before, after))
    lines = list(difflib.unified_diff(old, new, n=around, lineterm=""))[3:]
    if not around:
        lines = [line for line in lines if not line.startswith("@@")]
    return "".join("     ...\n" if line.startswith("@@") else f"{line.rstrip()}\n" for line in lines)


DIFFS = {
    *(changes(f"doors/{door}_before", f"doors/{door}_after") for door in ("fit", "train", "boto3")),
    changes("doors/first_fit_before", "doors/first_fit", around=2),
    changes("training/plain_loop", "training/own_loop", around=1),
}


def claimed(name: str, language: str, text: str) -> bool:
    if language in SHELL or (name, language) in SHOWN or (name, language) in WORDS:
        return True
    if language == "python" and name in FRAGMENTS:
        return True
    return (language in IN_FILES and text in SAVED) or (language == "diff" and text in DIFFS)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_block_with_a_language_is_claimed(name: str) -> None:
    for language, text in fenced(name):
        assert not language or claimed(name, language, text), (
            f"{name}: a block of {language} that no test looks at. Put it into docs/examples, byte by byte, "
            f"or say in {Path(__file__).name} which test compares it:\n{text}"
        )


def fenced(name: str) -> list[tuple[str, str]]:
    languages = (*SHELL, *IN_FILES, "", "text", "mermaid", "diff")
    found = [(block.language, block.text) for block in blocks(text_of(name), *languages)]
    fences = [line for line in text_of(name).splitlines() if line.lstrip().startswith("```")]
    assert len(fences) == 2 * len(found), f"{name}: a block in a language, or a place, that nobody looks at"
    return found


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_line_of_shell_is_one_that_its_program_takes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    for block in blocks(text_of(name), *SHELL):
        for words in shell.lines(block.text):
            for word in words[1:]:
                if word.endswith((".json", ".yaml", ".csv")) and "/" not in word:
                    (tmp_path / word).touch()  # the reader's own file
            with monkeypatch.context() as here:
                here.chdir(tmp_path)
                shell.check(words)


def test_every_example_is_shown_and_tested() -> None:
    shown = {text for name in DOCUMENTS for _, text in fenced(name)}
    linked = {Path(link).name for name in DOCUMENTS for link in links(text_of(name)) if "examples/" in link}
    missed = [name for name, text in FILES.items() if text not in shown and Path(name).name not in linked]
    assert missed == []
    tests = {name: [test for part, test in CHECKED_BY.items() if name.startswith(part)] for name in FILES}
    assert [name for name, found in tests.items() if len(found) != 1] == []
    assert [test for test in {*CHECKED_BY.values(), *SHOWN.values()} if not (ROOT / test).is_file()] == []


def test_claims_are_of_blocks_that_there_are() -> None:
    there = {(name, language) for name in DOCUMENTS for language, _ in fenced(name)}
    claims = {*SHOWN, *WORDS, *((name, "python") for name in FRAGMENTS)}
    assert claims - there == set()


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("policies/")])
def test_a_policy_of_the_examples_is_valid(name: str) -> None:
    parse_policy(yaml.safe_load(FILES[name]))


@pytest.mark.parametrize("name", ["job.json", "long.json"])
def test_a_request_of_the_examples_is_valid(name: str) -> None:
    check_request(json.loads(FILES[name]))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("trainmaster show", id="an argument is missing"),
        pytest.param("trainmaster queue --no-such-option", id="an option that there is not"),
        pytest.param("trainmaster priority my-job high", id="a word where a number belongs"),
        pytest.param("trainmaster local up --clock sundial", id="the twin does not know the value"),
        pytest.param("make nonsense", id="a target that there is not"),
        pytest.param(
            "python -m tools.training.prepare --no-such-option", id="an option of a program of ours"
        ),
        pytest.param("python no_such.py", id="a program that there is not"),
        pytest.param("torchrun --nproc-per-node 2 no_such.py", id="a script that there is not"),
        pytest.param("curl --json '{}' \"$control/nonsense\"", id="no control call"),
        pytest.param("curl -d '{}' \"$control/clock\"", id="a control call that does not say JSON"),
        pytest.param("aws sqs purge-queues --queue-url x", id="no operation of the service"),
        pytest.param("aws sqs purge-queue --queue x", id="no member of the request"),
        pytest.param("aws sqs purge-queue", id="a member that is needed is missing"),
        pytest.param("sam nonsense --template t.yaml", id="no command of SAM"),
        pytest.param("sam publish --no-such-option", id="no option of SAM's command"),
        pytest.param("trainmaster usage --no-such-option > usage.csv", id="before its output goes to a file"),
        pytest.param("rm -r everything", id="a program that nobody looks at"),
    ],
)
def test_a_wrong_line_is_noticed(line: str) -> None:
    (words,) = shell.lines(line)
    with pytest.raises((AssertionError, TyperException, SystemExit, shell.UnknownProgramError)):
        shell.check(words)


def test_a_changed_block_and_a_new_language_are_noticed() -> None:
    text = FILES["policies/first.yaml"]
    assert claimed("README.md", "yaml", text)
    assert not claimed("README.md", "yaml", f"{text}\n")
    assert not claimed("README.md", "rust", "fn main() {}\n")
    assert not claimed("README.md", "python", "print(1)\n")
