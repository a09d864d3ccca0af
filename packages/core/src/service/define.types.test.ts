/**
 * The types of a service's definition, as its author meets them. `npm run check` fails where one of these lines is refused, or where one
 * that must be refused is not.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { type Answer, answer } from '../words/answer.ts';
import { definersFor } from './define.ts';

interface Sources {
  weather: { at(lat: number): Promise<number> };
  chain: { block(): Promise<bigint> };
  mirror: { block(): Promise<bigint> };
}
interface Able {
  clock: { now(): number };
  wallets: { of(owner: string): string };
}
const { defineService } = definersFor<Sources, Able>({ costsMoney: () => false });

/** Whether two types are one, the word for what may be left out included. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isSame = <A, B>(same: Same<A, B>): boolean => same;

const common = {
  name: 'Typed',
  tag: 'Discovery',
  priceUsd: '0.01',
  summary: '',
  input: z.object({ of: z.number(), unit: z.enum(['m', 'ft']).default('m'), note: z.string().optional() }),
  output: z.object({ root: z.number(), note: z.string().optional() }),
  example: { of: 2 },
};
const method = { method: '', sources: [] };

test('a service gets the sources that it names, and no other', () => {
  const { needs } = defineService({
    ...common,
    path: 'named',
    needs: ['weather'],
    async run({ of }, { upstreams }) {
      isSame<keyof typeof upstreams, 'weather'>(true);
      isSame<Awaited<ReturnType<typeof upstreams.weather.at>>, number>(true);
      // @ts-expect-error: it does not name this source
      upstreams.chain;
      return answer({ root: of }, method);
    },
  });
  assert.deepEqual(needs, ['weather']);
  defineService({
    ...common,
    path: 'one-of',
    needs: [['chain', 'mirror']],
    uses: ['weather'],
    async run({ of }, { upstreams }) {
      isSame<keyof typeof upstreams, 'chain' | 'mirror' | 'weather'>(true);
      return answer({ root: of }, method);
    },
  });
  defineService({
    ...common,
    path: 'none',
    async run({ of }, { upstreams }) {
      isSame<keyof typeof upstreams, never>(true);
      // @ts-expect-error: it names none
      upstreams.weather;
      return answer({ root: of }, method);
    },
  });
});

test('a capability is there for whoever requires it, and may be missing for all others', () => {
  const { requires } = defineService({
    ...common,
    path: 'able',
    requires: ['clock'],
    mayUse: ['wallets'],
    async run({ of }, { clock, wallets }) {
      isSame<typeof clock, Able['clock']>(true);
      isSame<typeof wallets, Able['wallets'] | undefined>(true);
      // @ts-expect-error: it may be missing
      wallets.of('a');
      return answer({ root: of }, method);
    },
  });
  assert.deepEqual(requires, ['clock']);
  const run = async () => answer({ root: 1 }, method);
  // @ts-expect-error: there is no such capability
  defineService({ ...common, path: 'unable', mayUse: ['wings'], run });
  // @ts-expect-error: there is no such source
  defineService({ ...common, path: 'unheard', needs: ['rumours'], run });
});

test('its input is what the schema makes of the body, and its answer what the schema takes', () => {
  const service = defineService({
    ...common,
    path: 'typed',
    aliases: { value: 'of' },
    async run(input) {
      isSame<typeof input, { of: number; unit: 'm' | 'ft'; note?: string | undefined }>(true);
      const said: Answer<{ root: number; note?: string | undefined }> = answer({ root: input.of }, method);
      return said;
    },
  });
  assert.equal(service.path, 'typed');
  // @ts-expect-error: the answer lacks a field
  defineService({ ...common, path: 'short', run: async () => answer({ note: 'a' }, method) });
  // @ts-expect-error: a field of another type
  defineService({ ...common, path: 'wrong', run: async () => answer({ root: '1' }, method) });
  const run = async () => answer({ root: 1 }, method);
  // @ts-expect-error: an alias of no field
  defineService({ ...common, path: 'alias', aliases: { value: 'off' }, run });
  // @ts-expect-error: an example that does not fit
  defineService({ ...common, path: 'example', example: { of: 'two' }, run });
  // @ts-expect-error: a service costs something
  defineService({ ...common, path: 'free', priceUsd: undefined, run });
});
