import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadServices } from '../services/registry.ts';
import { createToolList, MAX_PAGE_BYTES, type Tool } from './tools.ts';

const services = await loadServices();
const forSale = { available: true, reason: null, message: null, retryAfterMs: 0, chains: [] } as const;
const free = { name: 'catalog', title: 'Catalog' } as Tool;

function allPages(list: ReturnType<typeof createToolList>) {
  const pages = [list.page(undefined)];
  for (let cursor = pages[0]?.nextCursor; cursor !== undefined; cursor = pages.at(-1)?.nextCursor)
    pages.push(list.page(cursor));
  return pages.map((page) => page ?? assert.fail('a cursor leads nowhere'));
}

test('every service stands on one page, and no page is too large', () => {
  const pages = allPages(createToolList(services, [free], () => forSale));
  assert.ok(pages.length > 1);
  for (const page of pages) assert.ok(Buffer.byteLength(JSON.stringify(page)) <= MAX_PAGE_BYTES + 100);
  const names = pages.flatMap(({ tools }) => tools.map(({ name }) => name));
  assert.deepEqual(names, ['catalog', ...services.map(({ path }) => path.replaceAll('-', '_'))]);
});

test('a cursor that no page had leads nowhere', () => {
  const list = createToolList(services, [free], () => forSale);
  for (const cursor of ['', 'page-0', 'page-99', 'page-01', '__proto__', 'page--1'])
    assert.equal(list.page(cursor), null);
});

test('a tool says when it is not for sale, and the list is made anew when that changes', () => {
  let available = true;
  const [service = assert.fail()] = services;
  const list = createToolList([service], [], () =>
    available ? forSale : { ...forSale, available, message: 'Its source is down.' },
  );
  const shown = () => list.page(undefined)?.tools[0] ?? assert.fail();
  assert.equal(shown(), shown());
  assert.equal(shown()._meta['farebox/available'], true);
  available = false;
  assert.equal(shown()._meta['farebox/available'], false);
  assert.match(shown().description, /Its source is down\.$/);
});

test('two tools of one name are refused at the start', () => {
  const [service = assert.fail()] = services;
  const twin = { ...free, name: service.path.replaceAll('-', '_') };
  assert.throws(() => createToolList([service], [twin], () => forSale), /two tools are named/);
});
