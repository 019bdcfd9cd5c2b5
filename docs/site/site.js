// What the theme leaves out for a reader with a keyboard or a screen reader: the search has a name, and a table that is
// wider than the page can be scrolled without a mouse.
document$.subscribe(() => {
  document.querySelector("[data-md-component=search]").setAttribute("aria-label", "Search");
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
  }
});
