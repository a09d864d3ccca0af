/** The catalog and the page of prices, from what is sold and from how it answered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DayFigures } from '../service/figures.ts';
import { catalogMain, readCatalogView } from './catalog-page.ts';
import { groupsFrom } from './groups.ts';
import { NO_GUIDES } from './guides.ts';
import { homeMain } from './home-page.ts';
import { pricingText } from './pricing-text.ts';
import { SAMPLE_SERVICES, sampleContext } from './sample.fixture.ts';

const groups = groupsFrom({ 'Sea & <land>': ['sea-temperature'], Empty: ['left-out'] });
const day: DayFigures = { medianMs: 1_912, answeredPercent: 99.8 };
const figures = {
  of: (path: string) => (path === 'token-price' ? day : null),
  ofAll: () => day,
  measuredAtMs: () => 1,
};
const pageOf = (query: object, context = sampleContext()) => {
  const catalog = { context, groups };
  return catalogMain(catalog, readCatalogView(query, catalog));
};
const pathsIn = (page: string) => [...page.matchAll(/<a href="\/docs\/([\w-]+)">/g)].map(([, path]) => path);

test('a service that nobody has measured has no figures, and a column of nothing but these is left out', () => {
  assert.doesNotMatch(pageOf({ all: '1' }), /Median|Answered/);
  const page = pageOf({ all: '1' }, sampleContext({ figures }));
  assert.match(page, /<td class="number figure">1\.9 s<\/td><td class="number figure">99\.8%<\/td>/);
  assert.equal([...page.matchAll(/<span class="faint">new<\/span>/g)].length, SAMPLE_SERVICES.length - 1);
});

test('the address chooses a group, a way to pay and an order, and what it does not know counts as nothing', () => {
  const inGroup = pageOf({ group: 'Sea & <land>', all: '1' });
  assert.deepEqual(pathsIn(inGroup), ['sea-temperature']);
  assert.match(inGroup, /aria-current="true">Sea &#38; &#60;land&#62; /);
  assert.deepEqual(pathsIn(pageOf({ group: 'Satellite Intelligence', all: '1' })), ['sea-temperature']);
  const prices = SAMPLE_SERVICES.toSorted((a, b) => Number(a.priceUsd) - Number(b.priceUsd));
  assert.deepEqual(
    pathsIn(pageOf({ sort: 'price', all: '1' })),
    prices.map(({ path }) => path),
  );
  assert.equal(pathsIn(pageOf({ sort: 'median' }, sampleContext({ figures })))[0], 'token-price');
  assert.equal(pathsIn(pageOf({ sort: 'answered' }, sampleContext({ figures })))[0], 'token-price');
  const whole = pageOf({});
  for (const query of [{ group: 'Empty' }, { sort: 'name' }, { pays: 'cash' }, { q: ['a'] }])
    assert.equal(pageOf(query), whole);
});

test('what cannot be sold now is hidden until it is asked for', () => {
  assert(!pathsIn(pageOf({})).includes('sea-temperature'));
  assert.match(pageOf({}), /Show 1 more that cannot be sold now/);
});

test('the page of prices tells what is sold and which ways to pay work, and no other', () => {
  const { markdown } = pricingText(sampleContext(), groups);
  assert.match(markdown, /Sea \S+ \S+\]\(\/services\?group=Sea%20%26%20%3Cland%3E\) \| 1 \| \$10\.00/);
  assert.match(markdown, /a trial key with \$5\.00 for 7 days/);
  assert.doesNotMatch(markdown, /Credit by card|\| x402|\| MPP/);
  assert.match(
    pricingText(sampleContext({ cardCheckout: true }), groups).markdown,
    /\| \$5\.00 \| \d+ calls? at \$/,
  );
});

test('home offers no trial, card or guide that there is not, and no figure that nobody has measured', () => {
  const bare = homeMain(sampleContext({ trial: null }), groups, NO_GUIDES);
  assert.doesNotMatch(bare, /get-trial|Buy credit|Sell your API|answered in the last/);
  const full = homeMain(sampleContext({ cardCheckout: true, figures }), groups, NO_GUIDES);
  assert.match(full, /id="get-trial"/);
  assert.match(full, /href="\/keys#buy">Buy credit/);
  assert.match(full, /1\.9 s median<\/span> <span>99\.8% answered in the last 24 hours/);
  const nothing = homeMain(sampleContext({ services: [] }), groups, NO_GUIDES);
  assert.match(nothing, /0 for sale now/);
});
