"""Messages under a tokenizer's own template: what transformers writes, and nothing lost on the way."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

from tests.unit.tools.training.small_tokenizers import made
from tools.training.documents import ByteTokenizer, Document, DocumentFiles
from tools.training.prepare import main
from tools.training.tokenizer import FileTokenizer
from training.errors import DataError

TOOLS = (
    "{% if tools %}TOOLS{% for t in tools %} {{ t.function.name }}{% endfor %}\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% if m.tool_calls %}CALL {{ m.tool_calls[0].function.name }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
EVERYTHING = (
    "{% if documents %}{{ documents | tojson }}{% endif %}{% if thinking %}THINK{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m | tojson(sort_keys=true) }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)
MARKED = (
    "{% for m in messages %}[{{ m.role }}]{% if m.role == 'assistant' %}{% generation %}"
    "{{ m.content[:3] if not loop.last else m.content }}</s>{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}"
)
CALL = {"type": "function", "function": {"name": "forecast", "arguments": {"city": "Bonn"}}}
FORECAST = {"type": "function", "function": {"name": "forecast", "parameters": {"type": "object"}}}
USER = {"role": "user", "content": "weather?"}
SUNNY = {"role": "assistant", "content": "sunny"}
WEIGHTED = [
    {"role": "user", "content": "2+2"},
    {"role": "assistant", "content": "5", "weight": 0},
    {"role": "user", "content": "really?"},
    {"role": "assistant", "content": "4", "weight": 1},
]


def _file(folder: Path, *lines: object) -> Path:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def _texts(tokenizer: Path, one: Document) -> tuple[str, str]:
    """Of all tokens, and of those that are trained."""
    inner = Tokenizer.from_file(str(tokenizer / "tokenizer.json"))
    kept = [token for token, trained in zip(one.tokens, one.trained, strict=True) if trained]
    whole, part = (inner.decode(list(ids), skip_special_tokens=False) for ids in (one.tokens, kept))
    return whole, part


def _written(folder: Path, line: object, *, template: str = TOOLS) -> tuple[str, str]:
    tokenizer = made(folder / "tokenizer", template=template)
    files = DocumentFiles([_file(folder, line)], FileTokenizer(tokenizer, end=None))
    return _texts(tokenizer, next(iter(files.documents())))


def _problem(folder: Path, line: object, *, template: str | None = TOOLS) -> str:
    tokenizer = FileTokenizer(made(folder / "tokenizer", template=template), end=None)
    fine = {"messages": [USER, SUNNY]}
    with pytest.raises(DataError) as refused:
        list(DocumentFiles([_file(folder, fine, line)], tokenizer).documents())
    return str(refused.value).partition("a.jsonl ")[2]


LINES = [
    pytest.param({"messages": [USER, {**SUNNY, "tool_calls": [CALL]}]}, TOOLS, id="a call"),
    pytest.param({"messages": [USER, SUNNY], "tools": [FORECAST]}, TOOLS, id="tools"),
    pytest.param({"messages": [USER, SUNNY], "tools": json.dumps([FORECAST])}, TOOLS, id="tools as JSON"),
    pytest.param({"messages": [USER, {**SUNNY, "content": None, "tool_calls": [CALL]}]}, TOOLS, id="null"),
    pytest.param({"messages": WEIGHTED}, TOOLS, id="weights"),
    pytest.param(
        {
            "messages": [{**USER, "name": "ann"}, {**SUNNY, "reasoning_content": "é"}],
            "documents": [{"title": "a", "text": "b"}],
            "chat_template_kwargs": {"thinking": True},
        },
        EVERYTHING,
        id="whatever a template reads",
    ),
    pytest.param(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}, SUNNY], "thinking": True},
        EVERYTHING,
        id="parts of a content",
    ),
]


@pytest.mark.parametrize(("line", "template"), LINES)
def test_C22_a_template_writes_what_it_writes_in_transformers(
    tmp_path: Path, line: dict[str, Any], template: str
) -> None:
    transformers = pytest.importorskip("transformers")
    whole, _ = _written(tmp_path, line, template=template)
    config = tmp_path / "tokenizer/tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "eos_token": "</s>"}))
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(str(tmp_path / "tokenizer"))
    tools = line.get("tools")
    assert whole == theirs.apply_chat_template(
        line["messages"],
        tools=json.loads(tools) if isinstance(tools, str) else tools,
        documents=line.get("documents"),
        thinking=line.get("thinking", line.get("chat_template_kwargs", {}).get("thinking")),
        tokenize=False,
    )


def test_S1_calls_and_tools_are_in_the_text_and_what_the_assistant_says_is_trained(tmp_path: Path) -> None:
    line = {"messages": [USER, {**SUNNY, "tool_calls": [CALL]}], "tools": [FORECAST]}
    whole, trained = _written(tmp_path, line)
    assert whole.startswith("TOOLS forecast<|im_start|>user\nweather?")
    assert trained == "sunnyCALL forecast<|im_end|>\n"


def test_C23_an_answer_of_weight_0_is_read_and_not_trained(tmp_path: Path) -> None:
    whole, trained = _written(tmp_path, {"messages": WEIGHTED})
    assert "assistant\n5<|im_end|>" in whole
    assert trained == "4<|im_end|>\n"


def test_C23_without_a_template_too(tmp_path: Path) -> None:
    (one,) = DocumentFiles([_file(tmp_path, {"messages": WEIGHTED})], ByteTokenizer()).documents()
    kept = bytes(token for token, trained in zip(one.tokens, one.trained, strict=True) if trained)
    assert kept == b"4\xff"
    assert b"<|assistant|>\n5\xff" in bytes(one.tokens)


@pytest.mark.parametrize("weight", [2, 0.5, -1, True, "0", "1", [0]])
def test_C23_another_weight_is_refused(tmp_path: Path, weight: object) -> None:
    told = _problem(tmp_path, {"messages": [USER, {**SUNNY, "weight": weight}]})
    assert told.startswith("line 2: messages[1].weight must be 0 (context, not trained) or 1, not ")


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{**USER, "weight": 1}, SUNNY], "messages[0].weight is of role 'user'"),
        ([USER, {**SUNNY, "weight": 0}], 'each message of role "assistant" has weight 0'),
    ],
)
def test_C23_a_weight_that_says_nothing_is_refused(tmp_path: Path, messages: list[object], told: str) -> None:
    assert _problem(tmp_path, {"messages": messages}).startswith(f"line 2: {told}")


MESSAGES = {"messages": [USER, SUNNY]}


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ({"messages": [{**USER, "name": "ann"}, SUNNY]}, "messages[0].name"),
        ({"messages": [USER, {**SUNNY, "reasoning_content": "a"}]}, "messages[1].reasoning_content"),
        ({"messages": [USER, {**SUNNY, "function_call": {"name": "f"}}]}, "messages[1].function_call"),
        ({"messages": [USER, {**SUNNY, "train": False}]}, "messages[1].train"),
        ({"messages": [USER, {**SUNNY, "loss": 0}]}, "messages[1].loss"),
        ({**MESSAGES, "documents": [{"text": "a"}]}, "documents"),
        ({**MESSAGES, "functions": [{"name": "f"}]}, "functions"),
        ({**MESSAGES, "source": "web", "prompt": "weather?"}, "source, prompt"),
        ({**MESSAGES, "chat_template_kwargs": {"enable_thinking": False}}, "enable_thinking"),
        ({**MESSAGES, "add_generation_prompt": True}, "add_generation_prompt"),
        ({"prompt": "a", "response": "b", "system": "c"}, "system"),
        ({"prompt": "a", "response": "b", "completion": "c"}, "completion"),
    ],
)
def test_S1_what_nobody_reads_is_refused_by_name(tmp_path: Path, line: object, lost: str) -> None:
    told = _problem(tmp_path, line)
    assert told.startswith(f"line 2: {lost}: neither known here nor read by the tokenizer's chat_template")


DATED = (
    "{% if not tools is defined %}{% set tools = none %}{% endif %}"
    "{% if not date is defined %}{% set date = 'today' %}{% endif %}{% set system = '' %}"
    "{% if messages[0].role == 'system' %}{% set system = messages[0].content %}{% endif %}"
    "{{ date }}{{ system }}" + TOOLS
)


def test_S1_a_variable_that_has_a_default_is_read_and_one_that_is_overwritten_is_not(tmp_path: Path) -> None:
    line = {**MESSAGES, "tools": [FORECAST], "date": "yesterday"}
    assert _written(tmp_path, line, template=DATED)[0].startswith("yesterdayTOOLS forecast<")
    told = _problem(tmp_path, {**MESSAGES, "system": "Be brief."}, template=DATED)
    assert told.startswith("line 2: system: neither known here nor read")


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ({"messages": [USER, {**SUNNY, "tool_calls": [CALL]}]}, "messages[1].tool_calls"),
        ({**MESSAGES, "tools": [FORECAST]}, "tools"),
    ],
)
def test_S1_the_simple_form_has_no_tools(tmp_path: Path, line: object, lost: str) -> None:
    assert _problem(tmp_path, line, template=None).startswith(f"line 2: {lost}: neither known")


def test_S1_a_content_that_the_template_skips_is_refused(tmp_path: Path) -> None:
    skips = "{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}{% endif %}{% endfor %}"
    line = {"messages": [{"role": "system", "content": "Be brief."}, USER, SUNNY]}
    assert _problem(tmp_path, line, template=skips).startswith("line 2: messages[0].content: neither known")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            [{"type": "image_url", "image_url": {"url": "a"}}],
            "messages[0].content has a part of type 'image_url'",
        ),
        (
            [{"type": "text", "text": "a"}],
            "messages[0].content is no text, and the chat_template writes it as",
        ),
        (7, "content is not a text in messages[0]"),
    ],
)
def test_S1_a_content_that_is_no_text_is_refused(tmp_path: Path, content: object, told: str) -> None:
    line = {"messages": [{"role": "user", "content": content}, SUNNY]}
    assert _problem(tmp_path, line).startswith(f"line 2: {told}")


def test_S1_a_part_of_a_content_that_is_not_read_is_refused(tmp_path: Path) -> None:
    parts = "{% for p in m.content %}{{ p.text }}{% endfor %}"
    said = [{"type": "text", "text": "a"}]
    messages = [
        {"role": "user", "content": [{**said[0], "cache_control": "x"}]},
        {"role": "assistant", "content": said},
    ]
    told = _problem(tmp_path, {"messages": messages}, template=TOOLS.replace("{{ m.content }}", parts))
    assert told.startswith("line 2: messages[0].content[0].cache_control: neither known")


@pytest.mark.parametrize(("field", "value"), [("tools", {}), ("tools", "{"), ("documents", ["a"])])
def test_S1_tools_and_documents_are_lists_of_objects(tmp_path: Path, field: str, value: object) -> None:
    assert f"line 2: {field} is " in _problem(tmp_path, {**MESSAGES, field: value})


def test_S1_empty_fields_and_links_between_messages_say_nothing(tmp_path: Path) -> None:
    answer = {"role": "tool", "content": "12", "tool_call_id": "1"}
    empty: dict[str, object] = {"name": None, "tool_calls": [], "refusal": ""}
    line = {"messages": [{**USER, **empty}, answer, {**SUNNY, "weight": None}], "source": None}
    assert _written(tmp_path, line)[1] == "sunny<|im_end|>\n"


def test_S1_what_the_user_leaves_out_is_left_out(tmp_path: Path) -> None:
    source = _file(tmp_path, {"messages": [{**USER, "name": "ann"}, SUNNY], "source": "web", "id": 3})
    options = ["--input", str(source), "--output", str(tmp_path / "out")]
    assert main([*options, "--ignore", "name,source"]) == 1
    assert main([*options, "--ignore", "name,source", "id"]) == 0


def test_S1_a_template_that_marks_what_is_generated_is_believed(tmp_path: Path) -> None:
    line: dict[str, Any] = {"messages": [USER, {"role": "assistant", "content": "abcdef"}, USER, SUNNY]}
    whole, trained = _written(tmp_path, line, template=MARKED)
    assert whole == "[user]weather?[assistant]abc</s>[user]weather?[assistant]sunny</s>"
    assert trained == "abc</s>sunny</s>"
    line["messages"][1]["weight"] = 0
    assert _written(tmp_path, line, template=MARKED)[1] == "sunny</s>"


def test_S1_an_earlier_turn_of_weight_0_may_be_written_otherwise(tmp_path: Path) -> None:
    shortens = MARKED.replace("{% generation %}", "").replace("{% endgeneration %}", "")
    first = {"role": "assistant", "content": "abcdef"}
    assert "writes message 2 otherwise" in _problem(
        tmp_path, {"messages": [USER, first, USER, SUNNY]}, template=shortens
    )
    line = {"messages": [USER, {**first, "weight": 0}, USER, SUNNY]}
    prompting = shortens + "{% if add_generation_prompt %}[assistant]{% endif %}"
    assert _written(tmp_path, line, template=prompting)[1] == "sunny</s>"


def test_S1_a_tokenizer_with_several_templates_writes_tools_with_that_for_tools(tmp_path: Path) -> None:
    folder = made(tmp_path / "tokenizer", template=None)
    config = folder / "tokenizer_config.json"
    plain = TOOLS.partition("{% endif %}")[2]
    named = [{"name": "default", "template": plain}, {"name": "tool_use", "template": TOOLS}]
    config.write_text(json.dumps({**json.loads(config.read_text()), "chat_template": named}))
    for tools, begin in ((None, "<|im_start|>"), ([FORECAST], "TOOLS forecast<")):
        path = _file(tmp_path, {"messages": [USER, SUNNY], "tools": tools})
        (one,) = DocumentFiles([path], FileTokenizer(folder, end=None)).documents()
        assert _texts(folder, one)[0].startswith(begin)


def test_S1_columns_beside_messages_are_read_too(tmp_path: Path) -> None:
    folder = made(tmp_path / "tokenizer", template=TOOLS)
    rows = [{"messages": [USER, {**SUNNY, "tool_calls": [CALL]}], "tools": json.dumps([FORECAST]), "id": 1}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (one,) = DocumentFiles([tmp_path / "a.parquet"], FileTokenizer(folder, end=None)).documents()
    assert _texts(folder, one)[0].startswith("TOOLS forecast<")
    assert _texts(folder, one)[1] == "sunnyCALL forecast<|im_end|>\n"
