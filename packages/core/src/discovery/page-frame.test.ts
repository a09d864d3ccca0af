import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { SANDBOX_WARNING } from '../http/sandbox-notice.ts';
import { framed, SITE_LINKS } from './page-frame.ts';

const WEB_FOLDER = join(import.meta.dirname, '../../web');
const NAMES = readdirSync(WEB_FOLDER).filter((name) => name.endsWith('.html'));
const fileOf = (name: string) => readFileSync(join(WEB_FOLDER, name), 'utf8');
const SHOP = { name: 'Farebox', contactEmail: null, logoUrl: null };
const AT = { baseUrl: 'https://shop.test', path: null };
const pageOf = (name: string, sandbox = false) =>
  framed(fileOf(name), { ...AT, name, links: SITE_LINKS, sandbox, shop: SHOP });
const countOf = (page: string, pattern: RegExp) => [...page.matchAll(pattern)].length;

test('every page is whole: one head, bar, main part, heading and footer, and no file repeats the frame', () => {
  assert(NAMES.length >= 6);
  for (const name of NAMES) {
    assert.doesNotMatch(fileOf(name), /<!doctype|<html|charset|style\.css|class="(skip|bar|mark)"/i, name);
    const page = pageOf(name);
    assert.match(page, /^<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">/, name);
    // Whoever is lost is told so without a script.
    const scripts = name === 'lost.html' ? 0 : 1;
    const script = /<script type="module" src="\/assets\/[\w-]+\.js">/g;
    assert.equal(countOf(page, script), scripts, name);
    for (const part of [
      ...[/<title>[^<]+<\/title>/g, /<\/head>/g],
      ...[/<body class="/g, /class="skip" href="#main"/g, /<header class="bar">/g, /<main id="main"/g],
      ...[/<h1/g, /<\/main>/g, /<footer>/g, /<\/body>\n<\/html>\n$/g],
    ])
      assert.equal(countOf(page, part), 1, `${name}: ${part}`);
  }
});

test('the bar marks the current page', () => {
  for (const { page: name, href } of SITE_LINKS) {
    if (!NAMES.includes(name)) continue;
    const current = [...pageOf(name).matchAll(/href="([^"]+)" aria-current="page"/g)].map(([, at]) => at);
    assert.deepEqual(current, [href], name);
  }
  assert.doesNotMatch(pageOf('credits-return.html'), /aria-current/);
});

test('a page that brings its own bar and footer has no second one', () => {
  const page = pageOf('admin.html');
  assert.match(page, /<nav aria-label="Admin"/);
  assert.doesNotMatch(page, /aria-label="Site"/);
});

test('a sandbox has its ribbon on every page, before the bar, and no other server has it', () => {
  for (const name of NAMES) {
    const page = pageOf(name, true);
    assert(
      page.indexOf(SANDBOX_WARNING) > 0 && page.indexOf(SANDBOX_WARNING) < page.indexOf('class="bar"'),
      name,
    );
    assert.doesNotMatch(pageOf(name), /ribbon/, name);
  }
});

test('a file that is not a page is refused, and the error names it', () => {
  for (const text of ['', '<main id="main"></main>', '<body class="x"><p>no main part</p>'])
    assert.throws(
      () => framed(text, { ...AT, name: 'x.html', links: SITE_LINKS, sandbox: false, shop: SHOP }),
      /x\.html is no page/,
    );
});

test('a shop has its own name, logo and contact on every page, and whatever it is called stays text', () => {
  const shop = {
    name: `Ada's "<b>" & $& Co`,
    contactEmail: 'ada@shop.test',
    logoUrl: 'https://shop.test/l.svg?a=1&b=2',
  };
  for (const name of NAMES) {
    const page = framed(fileOf(name), { ...AT, name, links: SITE_LINKS, sandbox: false, shop });
    assert.doesNotMatch(page, /Farebox|<b>|\{\{/, name);
    assert.equal(countOf(page, /Ada&#39;s &#34;&#60;b&#62;&#34; &#38; \$&#38; Co/g) >= 3, true, name);
    assert.match(page, /<img src="https:\/\/shop.test\/l.svg\?a=1&#38;b=2" alt=""/, name);
  }
  const home = framed(fileOf('docs.html'), {
    ...AT,
    name: 'docs.html',
    links: SITE_LINKS,
    sandbox: false,
    shop,
  });
  assert.match(home, /<a href="mailto:ada@shop.test">ada@shop.test<\/a>/);
});

test('a page says what it is to programs that show links to it, and where it stands', () => {
  const page = framed(
    '<title>A & B · {{shop}}</title>\n<meta name="description" content="What &#34;it&#34; is.">\n<body class="x"><main id="main"></main>',
    {
      ...AT,
      path: '/a"b',
      asText: '/a.md',
      name: 'x',
      links: SITE_LINKS,
      sandbox: false,
      shop: { ...SHOP, name: 'Ada' },
    },
  );
  for (const line of [
    '<meta property="og:title" content="A & B · Ada">',
    '<meta property="og:description" content="What &#34;it&#34; is.">',
    '<meta property="og:image" content="https://shop.test/assets/share.png">',
    '<link rel="canonical" href="https://shop.test/a&#34;b">',
    '<link rel="alternate" type="text/markdown" href="/a.md">',
    '<link rel="apple-touch-icon" href="/assets/touch.png">',
  ])
    assert(page.includes(line), line);
  assert.equal(countOf(page, /name="theme-color"/g), 2);
  assert.doesNotMatch(
    pageOf('credits-return.html'),
    /canonical/,
    'a page about one purchase has no address that stays',
  );
});
