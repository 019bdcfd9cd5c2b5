// Elements made of text: whatever a name holds, it is shown as it is written and never read as markup.

const SVG = "http://www.w3.org/2000/svg";

// h("p", {class: "x", onclick: f, vars: {"--used": "30%"}}, "text", h("b", {}, "more"))
// Attributes that are null, undefined or false are left out, true is written as "". Custom properties come
// as `vars`: they are set through the CSSOM, which the content security policy allows, unlike a style attribute.
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) {
      if (typeof value === "function") element.addEventListener(name.slice(2), value);
    } else if (name === "vars") {
      for (const [one, what] of Object.entries(value ?? {})) element.style.setProperty(one, what);
    } else if (name === "style") {
      throw new TypeError("The content security policy refuses style attributes: use a class, or vars.");
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children
    .flat(Infinity)
    .filter((one) => one !== null && one !== undefined && one !== false)
    .map((one) => (one instanceof Node ? one : visible(String(one))));
}

// Control characters, and those that turn the direction of what follows, are shown as such: nothing is hidden.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

function visible(text) {
  return text.replace(HIDDEN, "\ufffd");
}

// A text with what it has between backticks as code.
export function withCode(text) {
  return String(text ?? "").split("`").map((part, index, all) => (index % 2 && index < all.length - 1 ? h("code", {}, part) : index % 2 ? `\`${part}` : part));
}

export function replace(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

// Runs `change`, which makes the elements within `root` again, and gives the focus back to the one with the
// same data-key or id, with its selection if it is a field.
export function keepingFocus(root, change) {
  const before = root.contains(document.activeElement) ? document.activeElement : null;
  const key = before && (before.dataset.key ?? before.id);
  const range = before && before.selectionStart !== undefined ? [before.selectionStart, before.selectionEnd] : null;
  const value = before?.value;
  change();
  if (!key || root.contains(before)) return;
  const quoted = CSS.escape(key);
  const again = root.querySelector(`[data-key="${quoted}"]`) ?? root.querySelector(`#${quoted}`);
  if (!again) return;
  if (range && again.tagName === "INPUT" && value !== undefined) again.value = value;
  again.focus({ preventScroll: true });
  if (range && range[0] !== null && again.setSelectionRange) again.setSelectionRange(...range);
}
