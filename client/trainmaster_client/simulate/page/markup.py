"""Elements of HTML and SVG, escaped by the standard library's writer: a name is text wherever it goes."""

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from trainmaster_client.http.answers import printable

Node = ET.Element
Child = Node | str
Attribute = str | float


def node(tag: str, *children: Child, **attributes: Attribute) -> Node:
    """Make an element; ``class_`` is ``class``, ``aria_label`` is ``aria-label``; numbers are kept short."""
    made = Node(tag, {_name(name): _text(value) for name, value in attributes.items()})
    for child in children:
        add(made, child)
    return made


def add(parent: Node, *children: Child) -> None:
    for child in children:
        if isinstance(child, Node):
            parent.append(child)
            continue
        text = printable(child)
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + text
        else:
            parent.text = (parent.text or "") + text


def style(**properties: Attribute) -> str:
    """Write custom properties: ``style(x="12%")`` is ``--x:12%``."""
    return ";".join(f"--{name}:{_text(value)}" for name, value in properties.items())


def percent(share: float) -> str:
    return f"{round(100 * share, 3):g}%"


def html(root: Node, *, css: str) -> str:
    """Write the document. HTML does not escape style sheets alone, and this one is ours."""
    sheet = root.find("head/style")
    assert sheet is not None
    sheet.text = css
    return "<!DOCTYPE html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def table(head: Iterable[Child], rows: Iterable[Iterable[Child]], *, caption: str) -> Node:
    """Make a table; the first cell of a row is its heading."""
    body = node("tbody")
    for first, *rest in rows:
        body.append(node("tr", node("th", first, scope="row"), *(_cell(child) for child in rest)))
    headings = node("tr", *(node("th", heading, scope="col") for heading in head))
    inner = node("table", node("caption", caption), node("thead", headings), body)
    return node("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def figure(title: str, *content: Child, note: str = "", class_: str = "") -> Node:
    """Show a picture under a sentence that tells what it shows."""
    note_nodes = [node("span", note)] if note else []
    heading = node("figcaption", node("b", title), *note_nodes)
    return node("figure", heading, *content, class_=f"chart {class_}".strip())


def folded(title: str, *content: Child) -> Node:
    """Fold content under a title; it is shown when opened, and on paper."""
    return node("details", node("summary", title), *content)


def _cell(child: Child) -> Node:
    return child if isinstance(child, Node) and child.tag == "td" else node("td", child)


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-") if name != "viewBox" else name


def _text(value: Attribute) -> str:
    return printable(value) if isinstance(value, str) else f"{round(value, 2):g}"
