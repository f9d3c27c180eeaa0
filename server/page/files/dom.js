// Makes elements. Whatever comes from the server is put in as text or as an attribute's value, never as markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'on') {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else {
      node.setAttribute(name, value === true ? '' : String(value));
    }
  }
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

export const el = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
export const svg = (tag, properties = {}, ...children) => fill(document.createElementNS(SVG, tag), properties, children);
export const byId = (id) => document.getElementById(id);

// A number as it is read, with its exact value for whoever wants it (and for tests).
export const figure = (value, text) => el('data', { value }, text);

// Table cells have their roles spelled out, because on a phone they are no longer laid out as a table.
export const cell = (label, properties, ...children) =>
  el('td', { role: 'cell', 'data-label': label, ...properties }, ...children);
export const rowHead = (label, properties, ...children) =>
  el('th', { scope: 'row', role: 'rowheader', 'data-label': label, ...properties }, ...children);

// Replaces children and leaves the focus on the element that stands for the same thing.
export function replaceKeepingFocus(parent, ...children) {
  const focused = document.activeElement;
  const key = parent.contains(focused) ? focused.getAttribute('data-key') : null;
  parent.replaceChildren(...children);
  if (key !== null) {
    for (const candidate of parent.querySelectorAll('[data-key]')) {
      if (candidate.getAttribute('data-key') === key) candidate.focus({ preventScroll: true });
    }
  }
}

// An empty table says why it is empty.
export const emptyRow = (columns, text) =>
  el('tr', { role: 'row', class: 'empty' }, el('td', { role: 'cell', colspan: columns }, text));
