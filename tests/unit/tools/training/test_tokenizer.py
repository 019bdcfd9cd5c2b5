import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from tests.unit.tools.training.small_tokenizers import made
from tools.training.documents import DocumentFiles
from tools.training.prepare import main
from tools.training.tokenizer import FileTokenizer
from training.errors import ConfigError, DataError

_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] "
    "+ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_MESSAGES = [
    {"role": "user", "content": "the fox?"},
    {"role": "assistant", "content": "jumps over"},
    {"role": "user", "content": "Gut"},
    {"role": "assistant", "content": "danke"},
]


def _trained(tokenizer: FileTokenizer, path: Path) -> tuple[str, str]:
    """The text of all tokens, and that of those that are trained."""
    (one,) = DocumentFiles([path], tokenizer).documents()
    inner = Tokenizer.from_file(str(path.parent / "tokenizer/tokenizer.json"))
    kept = [token for token, trained in zip(one.tokens, one.trained, strict=True) if trained]
    whole, part = (inner.decode(list(ids), skip_special_tokens=False) for ids in (one.tokens, kept))
    return whole, part


def _line(folder: Path, line: object) -> Path:
    path = folder / "a.jsonl"
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n")
    return path


def test_a_text_is_what_the_library_makes_of_it_and_the_end(tmp_path: Path) -> None:
    tokenizer = FileTokenizer(made(tmp_path / "tokenizer", llama=True), end=None)
    told = _trained(tokenizer, _line(tmp_path, {"text": "the quick fox"}))
    assert told == ("<s>the quick fox</s>", "<s>the quick fox</s>")


def test_a_prompt_is_not_trained_and_neither_is_what_begins_it(tmp_path: Path) -> None:
    tokenizer = FileTokenizer(made(tmp_path / "tokenizer", llama=True), end=None)
    told = _trained(tokenizer, _line(tmp_path, {"prompt": "Wie geht es dir?", "response": " Gut, é"}))
    assert told == ("<s>Wie geht es dir? Gut, é</s>", " Gut, é</s>")


def test_messages_are_written_by_the_tokenizers_own_template(tmp_path: Path) -> None:
    tokenizer = FileTokenizer(made(tmp_path / "tokenizer", llama=True, template=_CHATML), end=None)
    whole, trained = _trained(tokenizer, _line(tmp_path, {"messages": _MESSAGES}))
    assert whole == (
        "<|im_start|>user\nthe fox?<|im_end|>\n<|im_start|>assistant\njumps over<|im_end|>\n"
        "<|im_start|>user\nGut<|im_end|>\n<|im_start|>assistant\ndanke<|im_end|>\n"
    )
    assert trained == "jumps over<|im_end|>\ndanke<|im_end|>\n"


def test_without_a_template_the_simple_one_ends_each_answer(tmp_path: Path) -> None:
    tokenizer = FileTokenizer(made(tmp_path / "tokenizer", llama=True), end=None)
    whole, trained = _trained(tokenizer, _line(tmp_path, {"messages": _MESSAGES}))
    assert whole.startswith("<s><|user|>\nthe fox?\n<|assistant|>\njumps over</s><|user|>\nGut\n")
    assert trained == "jumps over</s>danke</s>"


def test_a_template_that_rewrites_earlier_turns_is_refused_with_the_line(tmp_path: Path) -> None:
    shortens = "{% for message in messages %}{{ message['content'][:9 if loop.last else 2] }}{% endfor %}"
    tokenizer = FileTokenizer(made(tmp_path / "tokenizer", template=shortens), end=None)
    path = _line(tmp_path, {"messages": _MESSAGES})
    with pytest.raises(DataError, match=r"line 1: the chat_template writes message 2 otherwise"):
        list(DocumentFiles([path], tokenizer).documents())


def test_a_template_may_refuse_messages_and_may_not_reach_out(tmp_path: Path) -> None:
    refuses = "{{ raise_exception('roles must alternate') }}"
    escapes = "{{ messages.__class__.__mro__ }}"
    for template, problem in ((refuses, "roles must alternate"), (escapes, "unsafe")):
        tokenizer = FileTokenizer(made(tmp_path / "tokenizer", template=template), end=None)
        with pytest.raises(DataError, match=problem):
            list(DocumentFiles([_line(tmp_path, {"messages": _MESSAGES})], tokenizer).documents())


def test_the_end_token_is_named_by_the_config_or_the_option(tmp_path: Path) -> None:
    folder = made(tmp_path / "tokenizer")
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(ConfigError, match="--end-token must name the token that ends a document"):
        FileTokenizer(folder, end=None)
    with pytest.raises(ConfigError, match="has no token '<eos>'"):
        FileTokenizer(folder, end="<eos>")
    assert FileTokenizer(folder / "tokenizer.json", end="<|im_end|>").end == 3


def test_a_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError, match=r"tokenizer.json: it cannot be read as a tokenizer"):
        FileTokenizer(tmp_path, end=None)
    with pytest.raises(DataError, match="No such file or directory"):
        FileTokenizer(tmp_path / "none", end=None)


def test_prepare_writes_them_with_whole_documents_in_each_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(tmp_path / "tokenizer", template=_CHATML)
    lines = [{"messages": [{"role": "user", "content": f"the fox {n}"}, _MESSAGES[1]]} for n in range(40)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    command = [
        "--input",
        str(tmp_path / "a.jsonl"),
        "--output",
        str(tmp_path / "out"),
        "--tokenizer",
        str(folder),
    ]
    assert main([*command, "--validation-share", "0.25", "--pack", "64"]) == 0
    train, validation = capsys.readouterr().out.splitlines()
    assert "30 documents" in train
    assert "10 documents" in validation
    assert "sequences of 64 tokens" in train
    index = json.loads((tmp_path / "out/train/index.json").read_bytes())
    assert (index["version"], index["packed"]) == (2, 64)


@pytest.mark.thorough
@pytest.mark.parametrize("llama", [False, True])
def test_messages_are_the_tokens_that_transformers_makes_of_them(tmp_path: Path, llama: bool) -> None:  # noqa: FBT001
    transformers = pytest.importorskip("transformers")
    folder = made(tmp_path / "tokenizer", llama=llama, template=_CHATML)
    told = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**told, "eos_token": "</s>"}))
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(folder))
    (one,) = DocumentFiles(
        [_line(tmp_path, {"messages": _MESSAGES})], FileTokenizer(folder, end=None)
    ).documents()
    assert list(one.tokens) == theirs.apply_chat_template(_MESSAGES, tokenize=True, return_dict=False)
