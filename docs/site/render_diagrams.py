"""``make diagrams``: draws each mermaid diagram of the documents; deletes pictures of former ones.

Needs Chromium and, from npm, mermaid. The colours that mermaid draws with are then replaced by those of the
page, which differ by light and dark.
"""

from playwright.sync_api import Page

from demos.stage.chromium import running_browser
from docs.site.pictures import DRAWN, FENCED, digest

DOCS = DRAWN.parents[1]
MERMAID = DOCS.parent / "tests/browser/node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"
COLOURS = {
    "#010203": "--diagram-fill",
    "#040506": "--diagram-line",
    "#070809": "--diagram-text",
    "#0a0b0c": "--diagram-page",
}
"""A colour that mermaid draws with -> the property of the page that takes its place."""
FILL, LINE, TEXT, PAPER = COLOURS
THEME = {
    "primaryColor": FILL,
    "primaryBorderColor": LINE,
    "primaryTextColor": TEXT,
    "lineColor": LINE,
    "textColor": TEXT,
    "mainBkg": FILL,
    "nodeBorder": LINE,
    "clusterBkg": PAPER,
    "clusterBorder": LINE,
    "edgeLabelBackground": PAPER,
    "labelBackgroundColor": PAPER,
    "labelColor": TEXT,
    "transitionColor": LINE,
    "transitionLabelColor": TEXT,
    "specialStateColor": LINE,
    "stateBkg": FILL,
    "stateLabelColor": TEXT,
    "compositeBackground": PAPER,
    "actorBkg": FILL,
    "actorBorder": LINE,
    "actorTextColor": TEXT,
    "actorLineColor": LINE,
    "signalColor": LINE,
    "signalTextColor": TEXT,
    "noteBkgColor": PAPER,
    "noteBorderColor": LINE,
    "noteTextColor": TEXT,
    "background": PAPER,
    "fontFamily": "inherit",
    "fontSize": "14px",
}
DRAW = """async ({ name, text, theme }) => {
  mermaid.initialize({ startOnLoad: false, theme: "base", themeVariables: theme, htmlLabels: false,
    deterministicIds: true, flowchart: { htmlLabels: false }, state: { htmlLabels: false } });
  return (await mermaid.render(name, text)).svg;
}"""


def main() -> None:
    texts = {text for path in DOCS.rglob("*.md") for text in FENCED.findall(path.read_text(encoding="utf-8"))}
    wanted = {digest(text): text for text in texts}
    kept = {path.stem for path in DRAWN.glob("*.svg")} & wanted.keys()
    for path in DRAWN.glob("*.svg"):
        if path.stem not in kept:
            path.unlink()
    if missing := wanted.keys() - kept:
        draw({name: wanted[name] for name in missing})
    print(f"{len(wanted)} diagrams, {len(missing)} of them drawn now")


def draw(diagrams: dict[str, str]) -> None:
    with running_browser() as browser:
        page = browser.new_page()
        page.set_content("<body style='font: 14px sans-serif'></body>")
        page.add_script_tag(path=MERMAID)
        for name, text in diagrams.items():
            (DRAWN / f"{name}.svg").write_text(f"{drawn(page, name, text)}\n", encoding="utf-8")


def drawn(page: Page, name: str, text: str) -> str:
    svg: str = page.evaluate(DRAW, {"name": f"d{name}", "text": text, "theme": THEME})
    for asked, shown in COLOURS.items():
        svg = svg.replace(asked, f"var({shown})")
    return svg


if __name__ == "__main__":
    main()
