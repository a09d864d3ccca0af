import { byTag, findServices, loadCatalog, loadRecipe, priceOf } from './catalog.js';
import { byId, el, failed, SHOP } from './dom.js';
import { serviceDetail } from './service-detail.js';
import { offerWebTools } from './web-tools.js';

const filter = byId('filter');
const group = byId('group');
const onlyAvailable = byId('only-available');
const list = byId('services');
const index = list.parentElement;
const count = byId('count');
const more = byId('more');
const detail = byId('detail');
const sideBySide = matchMedia('(min-width: 900px)');

/** Each entry of the list is made once: a filter hides some, and nothing that has the focus is made anew. */
let shown = [];
let catalog = null;
/** The places of what the search found for the words in the box; null while nothing is searched for, or nothing was found. */
let places = null;
/** So long nobody types before the words are searched for. */
const PAUSE_MS = 150;
let searches = 0;
/** Settled when the newest words have been searched for. */
let searched = Promise.resolve();
/** The service that was looked at last, to come back to in the list. */
let lastSeen = null;

/** The service that the address names, or null on the overview. */
function addressed() {
  const match = /^\/docs\/([^/]+)\/?$/.exec(location.pathname);
  return match === null ? null : decodeURIComponent(match[1]);
}

function drawList() {
  shown = [];
  const groups = [...byTag(catalog.services)].map(([tag, entries]) => {
    const items = entries.map((entry) => {
      const item = entryView(entry);
      const text = `${entry.id} ${entry.name} ${entry.tag} ${entry.description}`.toLowerCase();
      return { entry, item, text, link: item.firstElementChild };
    });
    const number = el('span', { class: 'faint' });
    const section = el(
      'section',
      { class: 'group', 'aria-label': tag },
      el('h2', {}, tag, ' ', number),
      el('ul', {}, ...items.map(({ item }) => item)),
    );
    shown.push({ section, number, items, tag });
    return section;
  });
  group.replaceChildren(
    el('option', { value: '' }, 'All groups'),
    ...shown.map(({ tag, items }) => el('option', { value: tag }, `${tag} (${items.length})`)),
  );
  const clear = el('button', { type: 'button', class: 'secondary', onclick: clearFilter }, 'Show all');
  const words = el('p', { id: 'none-found' });
  const others = el('p', {}, 'Try ', suggested('price'), ' ', suggested('weather'), ' ', suggested('wallet'));
  list.replaceChildren(
    ...groups,
    el('div', { id: 'none', class: 'soft', hidden: true }, words, others, clear),
  );
  list.removeAttribute('aria-busy');
}

/** A word to search for in place of one that nothing fits. */
function suggested(word) {
  const onclick = () => {
    filter.value = word;
    wordsChanged();
    filter.focus();
  };
  return el('button', { type: 'button', class: 'secondary small', onclick }, word);
}

function entryView(entry) {
  return el(
    'li',
    {},
    el(
      'a',
      { href: `/docs/${entry.id}`, 'data-link': true, class: entry.available ? null : 'resting' },
      el(
        'span',
        { class: 'name' },
        entry.name,
        entry.available ? null : el('span', { class: 'badge warn' }, 'unavailable'),
      ),
      el('span', { class: 'price' }, priceOf(entry)),
      el('span', { class: 'about' }, entry.description),
    ),
  );
}

/** Searches as every door does. What it cannot find, such as the beginning of a word, is looked for letter by letter. */
function wordsChanged() {
  searches += 1;
  searched = search(searches);
}

async function search(turn) {
  const words = filter.value.trim();
  let found = [];
  if (words !== '') {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (turn !== searches) return;
    found = await findServices(words).catch(() => []);
    if (turn !== searches) return;
  }
  places = found.length === 0 ? null : new Map(found.map(({ id }, place) => [id, place]));
  arrange();
  filterChanged();
}

/** Puts what was found first, the best before all; without a search, all in catalog order. */
function arrange() {
  const placeOf = ({ entry }) => places?.get(entry.id) ?? Number.MAX_SAFE_INTEGER;
  const byPlace = shown.map(({ section, items }) => {
    const sorted = items.toSorted((a, b) => placeOf(a) - placeOf(b));
    section.lastElementChild.append(...sorted.map(({ item }) => item));
    return { section, first: Math.min(...items.map(placeOf)) };
  });
  byPlace.sort((a, b) => a.first - b.first);
  list.prepend(...byPlace.map(({ section }) => section));
}

function applyFilter() {
  if (catalog === null) return;
  const words = filter.value
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const current = addressed();
  let fitting = 0;
  for (const { section, number, items, tag } of shown) {
    const inGroup = group.value === '' || group.value === tag;
    let here = 0;
    for (const { entry, item, text } of items) {
      const isSold = !onlyAvailable.checked || entry.available || entry.id === current;
      const fits = places === null ? words.every((word) => text.includes(word)) : places.has(entry.id);
      item.hidden = !(inGroup && isSold && fits);
      if (!item.hidden) here += 1;
    }
    number.textContent = String(here);
    section.hidden = here === 0;
    fitting += here;
  }
  const total = catalog.services.filter(({ available }) => available || !onlyAvailable.checked).length;
  count.textContent = fitting >= total ? `${fitting} services` : `${fitting} of ${total} services`;
  byId('none').hidden = fitting > 0;
  byId('none-found').textContent =
    words.length === 0 ? 'No service matches.' : `No service matches “${filter.value.trim()}”.`;
}

/** The choice stands in the address of the list: it can be sent to somebody, and is there after a reload. */
function keepChoice() {
  if (addressed() !== null) return;
  const chosen = new URLSearchParams();
  const words = filter.value.trim();
  if (words !== '') chosen.set('q', words);
  if (group.value !== '') chosen.set('group', group.value);
  if (!onlyAvailable.checked) chosen.set('all', '1');
  const query = chosen.size === 0 ? '' : `?${chosen}`;
  history.replaceState(null, '', `${location.pathname}${query}${location.hash}`);
}

function takeChoice() {
  const chosen = new URLSearchParams(location.search);
  filter.value = (chosen.get('q') ?? '').slice(0, filter.maxLength);
  const tag = chosen.get('group') ?? '';
  group.value = shown.some((each) => each.tag === tag) ? tag : '';
  onlyAvailable.checked = !chosen.has('all');
}

/** After a change of the filter the list starts at its top, and the filter stays where it is on the screen. */
function filterChanged() {
  applyFilter();
  keepChoice();
  list.scrollTop = 0;
  if (!sideBySide.matches) {
    const top = Math.ceil(index.getBoundingClientRect().top + scrollY);
    if (scrollY > top) scrollTo(0, top);
  }
  hintAtMore();
}

function clearFilter() {
  filter.value = '';
  group.value = '';
  onlyAvailable.checked = false;
  wordsChanged();
  filter.focus();
}

/** Says under the list how many entries lie below its edge. */
function hintAtMore() {
  const edge = list.getBoundingClientRect().bottom;
  const links = [...list.querySelectorAll('li:not([hidden]) a')];
  const below = links.filter(
    (link) => link.offsetParent !== null && link.getBoundingClientRect().top >= edge - 8,
  );
  const isCut = sideBySide.matches && list.scrollHeight - list.clientHeight - list.scrollTop > 8;
  list.classList.toggle('cut', isCut);
  more.textContent = isCut && below.length > 0 ? `↓ ${below.length} more` : '';
}

/** Beside a service the list ends where the window ends, however far the page is scrolled. */
function fitList() {
  const top = Math.max(0, index.parentElement.getBoundingClientRect().top);
  index.style.setProperty('--above', `${Math.round(top)}px`);
  hintAtMore();
}

function linkOf(id) {
  return list.querySelector(`a[href="/docs/${CSS.escape(id)}"]`);
}

/** Marks the service of the address in the list and brings it into view there. The page itself is not scrolled. */
function markCurrent() {
  const id = addressed();
  list.querySelector('[aria-current]')?.removeAttribute('aria-current');
  const link = id === null ? null : linkOf(id);
  if (link === null) return;
  link.setAttribute('aria-current', 'page');
  if (!sideBySide.matches) return;
  const box = list.getBoundingClientRect();
  const { top, bottom } = link.getBoundingClientRect();
  if (top < box.top + 56 || bottom > box.bottom - 56)
    list.scrollTop += (top + bottom) / 2 - (box.top + box.bottom) / 2;
  hintAtMore();
}

async function showDetail(moveFocus) {
  const id = addressed();
  document.documentElement.dataset.view = id === null ? 'list' : 'service';
  if (id === null) {
    document.title = `Docs · ${SHOP}`;
    return;
  }
  lastSeen = id;
  const back = () => el('a', { class: 'back', href: '/docs', 'data-link': true }, '← All services');
  // What the server has drawn stays until there is more.
  const isDrawn = detail.querySelector('h1')?.dataset.service === id;
  const waiting = setTimeout(() => {
    if (addressed() === id && !isDrawn)
      detail.replaceChildren(back(), el('p', { class: 'soft', role: 'status' }, 'Loading the service …'));
  }, 300);
  try {
    const recipe = await loadRecipe(id);
    if (addressed() !== id) return;
    document.title = `${recipe.name} · ${SHOP}`;
    detail.replaceChildren(...serviceDetail(recipe));
    // The section was not there when the browser looked for it.
    if (!moveFocus && location.hash !== '') document.getElementById(location.hash.slice(1))?.scrollIntoView();
    if (moveFocus) detail.querySelector('h1')?.focus({ preventScroll: true });
  } catch (error) {
    if (addressed() !== id) return;
    document.title = `Docs · ${SHOP}`;
    detail.replaceChildren(
      back(),
      error.status === 404
        ? el(
            'h1',
            { tabindex: '-1' },
            error.code === 'NOT_SOLD_HERE' ? error.message : `There is no service “${id}”`,
          )
        : failed('The description of this service could not be loaded.', () => showDetail(true)),
    );
  } finally {
    clearTimeout(waiting);
  }
}

function go(path) {
  history.pushState(null, '', path);
  void moved();
  if (addressed() !== null || sideBySide.matches) scrollTo(0, 0);
}

/** On a phone the list and the service take turns: back in the list, the service that was read is where it was. */
async function moved() {
  const showing = showDetail(true);
  applyFilter();
  fitList();
  markCurrent();
  if (addressed() === null && lastSeen !== null && !sideBySide.matches) {
    linkOf(lastSeen)?.scrollIntoView({ block: 'center' });
    linkOf(lastSeen)?.focus({ preventScroll: true });
  }
  fitList();
  await showing;
}

document.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a[data-link]') : null;
  if (link === null || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(link.getAttribute('href'));
});
addEventListener('popstate', () => void moved());
filter.addEventListener('input', wordsChanged);
group.addEventListener('change', filterChanged);
onlyAvailable.addEventListener('change', filterChanged);
list.addEventListener('scroll', hintAtMore, { passive: true });
addEventListener('scroll', fitList, { passive: true });
addEventListener('resize', fitList);
// Enter opens the first service that fits.
filter.form.addEventListener('submit', async (event) => {
  event.preventDefault();
  await searched;
  list.querySelector('section:not([hidden]) li:not([hidden]) a')?.click();
});

async function showList() {
  try {
    catalog = await loadCatalog();
    const typed = filter.value;
    drawList();
    if (typed === '') takeChoice();
    arrange();
    applyFilter();
    if (filter.value !== '') wordsChanged();
    // The list has its height before the entry is brought into view in it.
    fitList();
    markCurrent();
  } catch {
    count.textContent = '';
    list.replaceChildren(failed('The list of services could not be loaded.', showList));
  }
}

await Promise.all([showList(), showDetail(false)]);
fitList();
void offerWebTools();
