import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NoVisibleText, visibleTextHash } from './visible-text.ts';

const LAW = 'Whoever keeps crypto-assets for others holds a licence of the authority. '.repeat(5);
const page = (body: string, head = '') =>
  Buffer.from(`<!DOCTYPE html><html><head>${head}</head><body>${body}</body></html>`);
const hashOf = async (bytes: Buffer) => (await visibleTextHash(bytes)).toString('hex');

describe('the visible text of a page', () => {
  test('is what a reader sees, however the page is written', async () => {
    const plain = await hashOf(page(`<p>${LAW}</p>`));
    const same = [
      page(`<div class="new"><p>\n\t${LAW.replaceAll(' ', '\n&nbsp;')}</p></div>`, '<title>12:03</title>'),
      page(`<script>var now = 1</script><style>p{}</style><!-- 2026 --><p>${LAW}</p>`),
      page(`<nav>Home 1,204 visitors</nav><header>News of today</header><p>${LAW}</p><footer>2027</footer>`),
      page(`<div hidden>one</div><p>${LAW}</p><span aria-hidden="true">two</span><svg><text>3</text></svg>`),
      page(`<aside>Other laws</aside><main><p>${LAW}</p></main><p>Seen 8,120 times</p>`),
      page(`<div role="main"><p>${LAW}</p></div><div>Weather: rain</div>`),
      // A whole page within a form, as some servers write it.
      page(`<form><input type="hidden" value="${'x'.repeat(50)}"><p>${LAW}</p></form>`),
      Buffer.from(`<html><body><p>${LAW}`),
    ];
    for (const [at, each] of same.entries()) assert.equal(await hashOf(each), plain, `${at}`);
  });

  test('is another one when a word of it is another one', async () => {
    const plain = await hashOf(page(`<main>${LAW}</main>`));
    assert.notEqual(await hashOf(page(`<main>${LAW.replace('others', 'itself')}</main>`)), plain);
    assert.notEqual(await hashOf(page(`<main>${LAW} Not before 2028.</main>`)), plain);
    // Bytes of another code than UTF-8 are told apart, too.
    const old = (letter: string) => Buffer.from(`<html><body>${LAW}${letter}</body></html>`, 'latin1');
    assert.notEqual(await hashOf(old('é')), await hashOf(old('è')));
  });

  test('that goes on after a menu in it, and over many pieces, is read to its end', async () => {
    const long = `<nav><ul><li>a</ul></nav><p>${LAW.repeat(3_000)}</p>`;
    const plain = await hashOf(page(`${long}<p>the end</p>`));
    assert.equal(await hashOf(page(`${long}<p>the\n end</p>`)), plain);
    assert.notEqual(await hashOf(page(`${long}<p>the End</p>`)), plain);
  });

  test('is not that of a file, of a page that a script draws, or of nothing', async () => {
    const none: [Buffer, RegExp][] = [
      [Buffer.from('%PDF-1.7 binary'), /no page of HTML/],
      [Buffer.from(''), /no page of HTML/],
      [Buffer.from(`{"text":"${LAW}"}`), /no page of HTML/],
      [page(`<div id="app"></div><script>draw("${LAW}")</script>`), /0 characters of text/],
      [page(`<noscript>${LAW}</noscript><p>Loading</p>`), /7 characters of text/],
    ];
    for (const [bytes, why] of none)
      await assert.rejects(
        visibleTextHash(bytes),
        (error) => error instanceof NoVisibleText && why.test(error.message),
      );
  });

  test('of broken tags is read, and that of elements without end is refused', async () => {
    assert.match(
      await hashOf(page(`</p></div></main><p <b ${LAW}></b>&#xZZ;&unknown;${LAW}`)),
      /^[0-9a-f]{64}$/,
    );
    assert.match(await hashOf(page('<p>'.repeat(100_000) + LAW)), /^[0-9a-f]{64}$/);
    await assert.rejects(
      visibleTextHash(page('<div>'.repeat(100_000) + LAW)),
      (error) => error instanceof NoVisibleText && /nest deeper than 500/.test(error.message),
    );
  });
});
