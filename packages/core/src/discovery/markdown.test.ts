import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fenced, htmlOf, inMarkdown } from './markdown.ts';

test('markup in Markdown stays text, and its links lead nowhere that runs', () => {
  assert.equal(htmlOf('a <b onclick=x>b</b>').trim(), '<p>a &#60;b onclick=x&#62;b&#60;/b&#62;</p>');
  assert.equal(htmlOf('<!-- note -->\n').trim(), '');
  for (const href of ['javascript:alert(1)', 'data:text/html,x', '//evil.test', 'JaVaScRiPt:x', 'x.md'])
    assert.equal(htmlOf(`[x](${href})`).trim(), '<p>x</p>', href);
  assert.equal(htmlOf('[x](https://a.test/"b)').includes('"b'), false);
  assert.equal(htmlOf('![x](https://a.test/p.png)').trim(), '<p>x</p>', 'no picture comes from elsewhere');
  assert.equal(htmlOf('see https://a.test').trim(), '<p>see https://a.test</p>');
});

test('headings are linked to by name, each by another', () => {
  const html = htmlOf('## What `you` get\n\n## What you get\n');
  assert.match(html, /<h2 id="what-you-get">What <code>you<\/code> get<\/h2>\n<h2 id="what-you-get-1">/);
});

test('text of others shows what it says', () => {
  for (const text of ['**b** _i_ [x](y) <i> a|b ~~s~~ # &amp;', 'an `odd backtick', '`` ` ``', '![p](q)'])
    for (const html of [htmlOf(inMarkdown(text)), htmlOf(`| h |\n|---|\n| ${inMarkdown(text)} |`)]) {
      assert.doesNotMatch(html, /<(strong|em|a|i|del|img|h1)\b/, text);
      assert.equal(/<td|<p|<th/.test(html), true);
    }
  assert.equal(htmlOf(inMarkdown('an `odd *one*')).trim(), '<p>an &#39;odd *one*</p>');
  assert.equal(htmlOf(inMarkdown('a `b|c` d')).trim(), '<p>a <code>b\\|c</code> d</p>');
  assert.match(htmlOf(`| h |\n|---|\n| ${inMarkdown('a `b|c` d')} |`), /a <code>b\|c<\/code> d/);
});

test('a block of code ends where it should', () => {
  assert.match(htmlOf(fenced('sh', 'a\n```\n<b>')), /<code>a\n```\n&#60;b&#62;<\/code><\/pre>\n$/);
});

test('a column that Markdown aligns at the right is one of numbers', () => {
  const html = htmlOf('| Group | From |\n| --- | ---: |\n| Earth | $0.05 |');
  assert.match(html, /<th scope="col">Group<\/th><th scope="col" class="number">From<\/th>/);
  assert.match(html, /<th scope="row">Earth<\/th><td class="number">\$0\.05<\/td>/);
});
