import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SITE_FACTOR } from './caller-address.ts';
import { createAddressLimit } from './rate-limit.ts';

test('a /64 is one address, and all of a /48 together are sixteen', () => {
  let nowMs = 0;
  const limit = createAddressLimit({ perMinute: 10, maxNames: 1_000, nowMs: () => nowMs });
  const allowed = (address: string) => limit.take(address).allowed;
  for (let host = 1; host <= 10; host += 1) assert(allowed(`2606:4700:1:1::${host}`));
  const refused = limit.take('2606:4700:1:1:ffff::1');
  assert.deepEqual([refused.allowed, refused.limit], [false, 10]);
  // What a network is refused takes nothing from its neighbours.
  for (let count = 0; count < 1_000; count += 1) assert(!allowed('2606:4700:1:1::1'));

  let taken = 10;
  for (let network = 2; network < 100; network += 1)
    for (let count = 0; count < 10; count += 1)
      if (allowed(`2606:4700:1:${network.toString(16)}::1`)) taken += 1;
  assert.equal(taken, 10 * SITE_FACTOR);
  const site = limit.take('2606:4700:1:ffff::1');
  assert.deepEqual([site.allowed, site.remaining, site.limit], [false, 0, 10 * SITE_FACTOR]);
  assert(allowed('2606:4700:2:1::1'), 'another /48');
  assert(allowed('8.8.8.8'));
  nowMs += 60_000;
  assert(allowed('2606:4700:1:1::1'));
});
