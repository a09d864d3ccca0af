/**
 * Makes an element. Text is always text, never markup.
 *
 * @param {string} tag
 * @param {Record<string, unknown>} [attributes] `on…` with a function listens; false, null and undefined are left out
 * @param {...(Node|string|null|false)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

/** The element with this id, which the page is known to have. */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found;
}

/** What the shop is called, as its server says in the head of every page. */
export const SHOP = document.querySelector('meta[name="application-name"]').content;

/** Text in which `backticks` mark code, as the documents write it. */
export function prose(text) {
  const parts = text.split('`');
  return parts.map((part, index) => (index % 2 === 1 ? el('code', {}, part) : part));
}

const COPIED_SHOWN_MS = 4_000;

/**
 * A button that copies a text, where the browser lets a page do that.
 *
 * @param {{ shown: string, refused: string, attributes: Record<string, unknown> }} look what it says before, and when it may not
 */
export function copyButton(text, { shown, refused, attributes }) {
  const button = el('button', { type: 'button', ...attributes }, shown);
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied ✓';
    } catch {
      // A browser may refuse: then the text is there to be selected.
      button.textContent = refused;
    }
    setTimeout(() => {
      button.textContent = shown;
    }, COPIED_SHOWN_MS);
  });
  return button;
}

/** A block of code with a button that copies it, where the browser lets a page do that. */
export function codeBlock(text, label) {
  const code = el('pre', { tabindex: '0', 'aria-label': label }, el('code', {}, text));
  if (navigator.clipboard === undefined) return el('div', { class: 'code' }, code);
  const attributes = { class: 'copy', 'aria-label': `Copy ${label}` };
  return el(
    'div',
    { class: 'code' },
    code,
    copyButton(text, { shown: 'Copy', refused: 'Select it', attributes }),
  );
}

/**
 * A picture that is drawn as wide as it is shown, so that its letters have their size.
 *
 * @param {Record<string, unknown>} attributes
 * @param {{ width: number, height: number, draw: (width: number) => Node[] }} picture `width` until it is known
 */
export function drawnToWidth(attributes, { width: first, height, draw }) {
  const picture = svg('svg', { role: 'img', ...attributes });
  const drawAt = (width) => {
    picture.setAttribute('viewBox', `0 0 ${width} ${height}`);
    picture.replaceChildren(...draw(width));
  };
  drawAt(first);
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width > 0) drawAt(Math.round(contentRect.width));
  }).observe(picture);
  return picture;
}

/** A notice; `tone` is one of `plain`, `good`, `warn`, `bad`. */
export function notice(tone, ...children) {
  return el('div', { class: `notice ${tone}`, role: tone === 'bad' ? 'alert' : 'status' }, ...children);
}

/** A notice that something could not be loaded, with a button that tries again. */
export function failed(text, again) {
  const button = el(
    'button',
    { type: 'button', class: 'secondary', onclick: () => void again() },
    'Try again',
  );
  return notice('bad', el('p', {}, text), button);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
}
