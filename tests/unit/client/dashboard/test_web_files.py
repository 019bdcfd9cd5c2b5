"""The dashboard's files: whole, safe by construction, and nothing in them that the content policy refuses."""

import hashlib
import json
import re
from importlib.resources import files
from pathlib import PurePosixPath

import pytest
from trainmaster_client import dashboard
from trainmaster_client.dashboard.web_files import INDEX, WebFile, web_files

FILES = web_files()
SCRIPTS = sorted(path for path in FILES if path.endswith(".js"))
FONTS = sorted(path for path in FILES if path.endswith(".woff2"))
TEXTS = sorted(FILES.keys() - set(FONTS))
STYLES = sorted(path for path in FILES if path.endswith(".css"))
TOKENS = "tokens.css"
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b(?!\w*[\"')])|\b(?:rgb|hsl|oklch)a?\(")
"""A colour as it is written, other than by its token."""
READS_MARKUP = re.compile(
    r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write(ln)?|createContextualFragment|DOMParser"
    r"|setHTMLUnsafe|srcdoc)\b|\beval\(|\bnew Function\b|javascript:|\bset(Timeout|Interval)\(\s*[\"'`]"
)
"""Whatever makes elements or code of text. The pages show names that others chose."""
STYLE_ATTRIBUTE = re.compile(r"""\bstyle\s*[:=]\s*["'`]|setAttribute\(\s*["']style|cssText""")
"""Refused by ``default-src 'self'``; custom properties by ``vars`` of dom.js are not."""
LONGEST_LINES = 400


def text(path: str) -> str:
    return FILES[path].content.decode()


@pytest.mark.parametrize("path", SCRIPTS)
def test_a_script_makes_no_markup_and_no_code_of_text(path: str) -> None:
    assert READS_MARKUP.findall(text(path)) == []


@pytest.mark.parametrize("path", SCRIPTS)
def test_a_script_sets_no_style_attribute(path: str) -> None:
    assert STYLE_ATTRIBUTE.findall(text(path)) == []


@pytest.mark.parametrize("path", SCRIPTS)
def test_a_script_says_first_what_lives_there_and_is_not_long(path: str) -> None:
    lines = text(path).splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) <= LONGEST_LINES


@pytest.mark.parametrize("path", SCRIPTS)
def test_what_a_script_imports_is_there_by_a_relative_path(path: str) -> None:
    for wanted in re.findall(r"""\bfrom\s+["']([^"']+)["']|\bimport\(?\s*["']([^"']+)["']""", text(path)):
        name = wanted[0] or wanted[1]
        assert name.startswith((".", "..")), name
        parts: list[str] = []
        for part in (PurePosixPath(path).parent / name).parts:
            if part == "..":
                parts.pop()
            elif part != ".":
                parts.append(part)
        assert "/".join(parts) in FILES, name


@pytest.mark.parametrize("path", TEXTS)
def test_no_file_asks_another_server_or_an_absolute_path(path: str) -> None:
    found = text(path).replace('"http://www.w3.org/2000/svg"', "")
    assert re.findall(r"https?://[^\s\"'`$)]+", found) == []
    assert re.findall(r"""(?:src|href|fetch\()\s*[=:]?\s*["'`]/""", found) == []


def test_the_page_has_no_script_and_no_style_of_its_own_within() -> None:
    page = text(INDEX)
    assert re.findall(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", page) == []
    for name in re.findall(r'(?:src|href)="([^"#]+)"', page):
        assert name in FILES


def test_a_file_has_the_type_of_its_suffix_and_a_tag_of_its_content() -> None:
    assert FILES["app.js"].kind == "text/javascript; charset=utf-8"
    assert FILES["style.css"].kind == "text/css; charset=utf-8"
    tags = {file.etag for file in FILES.values()}
    assert len(tags) == len({file.content for file in FILES.values()})


@pytest.mark.parametrize(
    "written", ["x.innerHTML = name", "x.insertAdjacentHTML('beforeend', name)", "setTimeout('f()', 5)"]
)
def test_the_rule_finds_what_it_is_for(written: str) -> None:
    assert READS_MARKUP.search(written)
    assert not READS_MARKUP.search("x.textContent = name")


def test_only_files_of_known_kinds_are_served() -> None:
    assert {path.rpartition(".")[2] for path in FILES} <= {"html", "css", "js", "svg", "woff2"}
    assert all(isinstance(file, WebFile) and file.content for file in FILES.values())


@pytest.mark.parametrize("path", [path for path in STYLES if path != TOKENS])
def test_only_the_tokens_have_colours_of_their_own(path: str) -> None:
    assert COLOUR.findall(text(path)) == []


def test_the_rule_of_colours_finds_what_it_is_for() -> None:
    assert COLOUR.search("color: #ffffff;")
    assert COLOUR.search("background: rgb(0 0 0 / 45%)")
    assert not COLOUR.search('fill: url("#weave")')


@pytest.mark.parametrize("path", STYLES)
def test_every_token_that_a_style_uses_is_set_somewhere(path: str) -> None:
    styles = "".join(text(style) for style in STYLES)
    given = set(re.findall(r"(--[\w-]+)\s*:", styles))
    given |= set(re.findall(r"\"(--[\w-]+)\"", "".join(text(script) for script in SCRIPTS)))
    assert set(re.findall(r"var\((--[\w-]+)", text(path))) - given == set()


def test_each_font_has_its_licence_beside_it_and_is_in_the_bill_of_materials() -> None:
    folder = files(dashboard) / "web/fonts"
    bill = json.loads((folder / "fonts.cdx.json").read_text("utf-8"))["components"]
    hashes = {component["bom-ref"]: component["hashes"][0]["content"] for component in bill}
    assert hashes == {
        path.removeprefix("fonts/"): hashlib.sha256(FILES[path].content).hexdigest() for path in FONTS
    }
    assert {component["licenses"][0]["license"]["id"] for component in bill} == {"OFL-1.1"}
    for component in bill:
        licence = folder / f"{component['name'].replace(' ', '')}-OFL-1.1.txt"
        assert "SIL Open Font License, Version 1.1" in licence.read_text("utf-8")
