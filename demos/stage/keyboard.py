"""Walks over a page with the Tab key alone: what it reaches, and whether one sees where the focus is."""

from playwright.sync_api import Page

MOST_TABS = 400
_NAME = """(element) => {
    const label = element.getAttribute('aria-label');
    const name = label || element.innerText || element.getAttribute('href') || '';
    return `${element.tagName.toLowerCase()} ${name.trim()}`;
}"""
_FOCUSED = f"() => ({_NAME})(document.activeElement)"
_PRESSABLE = f"""() => [...document.querySelectorAll("a[href], button, select, input, textarea, summary")]
    .filter((element) => element.checkVisibility() && !element.disabled && element.tabIndex >= 0)
    .map({_NAME})"""
_HAS_OUTLINE = """() => {
    const style = getComputedStyle(document.activeElement);
    return style.outlineStyle !== 'none' || style.boxShadow !== 'none';
}"""
_BEGIN = """() => {
    document.querySelectorAll('[data-reached]').forEach((element) => element.removeAttribute('data-reached'));
    document.querySelector('a[href]').focus();
}"""
_IS_OVER = "() => document.activeElement === document.body || 'reached' in document.activeElement.dataset"


def pressable(page: Page) -> set[str]:
    """Return tag and name of whatever can be pressed."""
    return set(page.evaluate(_PRESSABLE))


def focused(page: Page) -> str:
    """Return tag and name of what has the focus."""
    name: str = page.evaluate(_FOCUSED)
    return name


def walk(page: Page) -> tuple[list[str], list[str]]:
    """Press Tab once around the page; return what had the focus, and what of it did not show that."""
    reached: list[str] = []
    unseen: list[str] = []
    page.evaluate(_BEGIN)
    while len(reached) < MOST_TABS and not page.evaluate(_IS_OVER):
        page.evaluate("document.activeElement.dataset.reached = ''")
        reached.append(focused(page))
        if not page.evaluate(_HAS_OUTLINE):
            unseen.append(reached[-1])
        page.keyboard.press("Tab")
    return reached, unseen


def findings(page: Page) -> list[str]:
    """Say what the Tab key does not reach, and where the focus cannot be seen."""
    reached, unseen = walk(page)
    missed = sorted(pressable(page) - set(reached))
    return [*(f"not reached: {name}" for name in missed), *(f"focus not seen: {name}" for name in unseen)]
