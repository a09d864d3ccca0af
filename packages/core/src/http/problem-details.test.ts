import assert from 'node:assert/strict';
import { test } from 'node:test';
import { instanceOf, problemDetails, wantsProblemDetails } from './problem-details.ts';

test('problem details are for whoever names them, and wants plain JSON no more than them', () => {
  const cases: [string | undefined, boolean][] = [
    [undefined, false],
    ['', false],
    ['*/*', false],
    ['application/*', false],
    ['application/json', false],
    ['application/problem+jsonx', false],
    ['application/problem+xml', false],
    ['application/problem+json', true],
    ['Application/Problem+JSON; charset=utf-8', true],
    ['application/json, application/problem+json', true],
    ['application/problem+json;q=0.5, application/json;q=0.5', true],
    ['application/problem+json;q=0.4, application/json;q=0.5', false],
    ['application/problem+json ; q=0.4 , */*;q=0.1', true],
    ['application/problem+json;q=0.4, */*', false],
    ['application/problem+json;q=0.4, application/json;q=0.2, */*', true],
    ['application/problem+json;q=0', false],
    ['application/problem+json;q=0.000, text/html', false],
    ['application/problem+json;q=2', false],
    ['application/problem+json;q=', false],
    [`${'a/b,'.repeat(5_000)}application/problem+json`, true],
  ];
  for (const [accept, wanted] of cases) assert.equal(wantsProblemDetails(accept), wanted, accept);
});

test('the standard’s fields come first, and a field of ours never stands in their place', () => {
  const details = problemDetails(
    { code: 'NOT_FOUND', message: 'There is none.', status: 'active', title: 'x', charged: false },
    404,
    '/x#1',
  );
  assert.deepEqual(Object.keys(details).slice(0, 5), ['type', 'title', 'status', 'detail', 'instance']);
  assert.deepEqual(details, {
    type: 'about:blank',
    title: 'Not Found',
    status: 404,
    detail: 'There is none.',
    instance: '/x#1',
    code: 'NOT_FOUND',
    message: 'There is none.',
    charged: false,
  });
});

test('where it happened holds no query, and has a bound', () => {
  assert.equal(instanceOf('/a/b?token=secret', 'req_1'), '/a/b#req_1');
  assert.equal(instanceOf(`/${'a'.repeat(30_000)}`, 'req_1').length, 506);
});
