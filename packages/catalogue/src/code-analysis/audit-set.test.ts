import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judged, samples } from './audit-set.fixture.ts';

/** Each kind of hole, and the rules of which one must find it: finding it by another is luck. */
const RULES_OF: Readonly<Record<string, readonly string[]>> = {
  access: ['tx-origin', 'unprotected-setting', 'wrong-constructor', 'unprotected-selfdestruct'],
  arithmetic: ['overflow'],
  denial: ['forced-payment', 'call-in-loop', 'exact-balance', 'locked-ether'],
  oracle: ['stale-price'],
  randomness: ['weak-randomness'],
  unchecked: ['unchecked-call', 'unchecked-transfer'],
  callback: ['unprotected-callback'],
  'divide-first': ['divide-before-multiply'],
  downcast: ['unsafe-downcast'],
  'drain-ether': ['unprotected-withdrawal', 'unprotected-selfdestruct'],
  'drain-token': ['unprotected-token-payout', 'unprotected-approval', 'arbitrary-call'],
  ecrecover: ['zero-signer'],
  inflation: ['inflated-share'],
  mint: ['unprotected-mint', 'unprotected-burn'],
  owner: ['unprotected-authority', 'unprotected-setting', 'unprotected-slot'],
  packed: ['packed-collision'],
  'pull-from-anyone': ['pull-from-anyone'],
  reentrancy: ['reentrancy'],
  replay: ['signature-replay'],
  slippage: ['no-slippage-limit'],
  tokens: ['unchecked-transfer', 'exact-balance', 'locked-ether', 'stale-price'],
  upgrade: ['unprotected-upgrade', 'untrusted-delegatecall'],
  'value-in-loop': ['value-in-loop'],
  'spot-price': ['spot-price'],
  'assembly-wrap': ['overflow'],
};

describe('textbook holes that the rules were written with', () => {
  const tuned = [...samples('tuned'), ...samples('styles-tuned'), ...samples('pools-tuned')];
  for (const sample of tuned) {
    it(`${sample.kind}, ${sample.weak ? 'weak' : 'clean'}: ${sample.name}`, () => {
      const { found, alarms, compilerError } = judged(sample);
      assert.equal(compilerError, null);
      const rules = alarms.map(({ rule }) => rule);
      if (!sample.weak) return assert.deepEqual(rules, [], 'a false alarm');
      assert(found, `nothing at the hole: ${rules.join(', ')}`);
      assert(
        rules.some((rule) => RULES_OF[sample.kind]?.includes(rule)),
        `found by another rule: ${rules.join(', ')}`,
      );
    });
  }
});
