import { byTag, loadCatalog, loadRecipe, priceOf } from './catalog.js';
import { byId, el, notice } from './dom.js';
import { serviceDetail } from './service-detail.js';

const filter = byId('filter');
const onlyAvailable = byId('only-available');
const list = byId('services');
const count = byId('count');
const detail = byId('detail');
const intro = [...detail.childNodes];
let catalog = { services: [] };

/** The service that the address names, or null on the overview. */
function addressed() {
  const match = /^\/docs\/([^/]+)\/?$/.exec(location.pathname);
  return match === null ? null : decodeURIComponent(match[1]);
}

function renderList() {
  const words = filter.value
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const shown = catalog.services.filter((entry) => {
    if (onlyAvailable.checked && !entry.available) return false;
    const text = `${entry.id} ${entry.name} ${entry.tag} ${entry.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  count.textContent =
    shown.length === catalog.services.length
      ? `${shown.length} services`
      : `${shown.length} of ${catalog.services.length}`;
  list.replaceChildren(
    ...[...byTag(shown)].map(([tag, entries]) =>
      el('section', { class: 'group' }, el('h2', {}, tag), el('ul', {}, ...entries.map(entryView))),
    ),
    shown.length === 0 ? el('p', { class: 'soft' }, 'No service fits.') : '',
  );
}

function entryView(entry) {
  return el(
    'li',
    {},
    el(
      'a',
      {
        href: `/docs/${entry.id}`,
        'data-link': true,
        class: entry.available ? null : 'resting',
        'aria-current': addressed() === entry.id ? 'page' : null,
      },
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

async function renderDetail(moveFocus) {
  const id = addressed();
  document.body.dataset.view = id === null ? 'list' : 'service';
  if (id === null) {
    document.title = 'Services · Farebox';
    detail.replaceChildren(...intro);
    return;
  }
  try {
    const recipe = await loadRecipe(id);
    if (addressed() !== id) return;
    document.title = `${recipe.name} · Farebox`;
    detail.replaceChildren(serviceDetail(recipe));
    if (moveFocus) detail.querySelector('h1')?.focus({ preventScroll: true });
  } catch {
    const known = catalog.services.some((entry) => entry.id === id);
    document.title = 'Services · Farebox';
    detail.replaceChildren(
      el('a', { class: 'back', href: '/docs', 'data-link': true }, '← All services'),
      notice(
        'warn',
        known ? 'The description could not be loaded. Try again.' : `There is no service “${id}”.`,
      ),
    );
  }
}

function go(path) {
  history.pushState(null, '', path);
  renderList();
  void renderDetail(true);
  // On a phone the list and the service take turns; beside each other, the list keeps its place.
  window.scrollTo(0, 0);
}

document.addEventListener('click', (event) => {
  const link = event.target instanceof Element ? event.target.closest('a[data-link]') : null;
  if (link === null || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(link.getAttribute('href'));
});
window.addEventListener('popstate', () => {
  renderList();
  void renderDetail(true);
});
filter.addEventListener('input', renderList);
onlyAvailable.addEventListener('change', renderList);

try {
  catalog = await loadCatalog();
  renderList();
} catch {
  list.replaceChildren(notice('bad', 'The catalog could not be loaded. Reload the page to try again.'));
}
await renderDetail(false);
