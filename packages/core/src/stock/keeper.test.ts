import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SERVICE } from '../paid-call/sale.fixture.ts';
import { Shelf } from '../service/shelf.ts';
import { StockKeeper } from './keeper.ts';
import type { ServiceRules } from './service-rule.ts';
import { type StockFile, StockRefused, type StockSource } from './source.ts';
import type { Version } from './version-store.ts';

const START_MS = 1_000_000;

/** The versions of a database that several processes share. */
function ledgerOfVersions(clock: { nowMs: number }) {
  const versions: Version[] = [];
  const newest = (kind: Version['kind']) => versions.findLast((each) => each.kind === kind) ?? null;
  const add = (kind: Version['kind'], content: string, madeBy: string) => {
    const number = BigInt(versions.length + 1);
    versions.push({
      number,
      kind,
      content,
      madeBy,
      madeAtMs: clock.nowMs,
      sha256: '',
      reason: null,
      actId: null,
    });
    return number;
  };
  return {
    versions,
    addRules: (content: string) => add('rules', content, 'desk'),
    store: {
      newest: async () => ({ file: newest('file')?.number ?? null, rules: newest('rules')?.number ?? null }),
      byNumber: async (number: bigint) => versions[Number(number) - 1] ?? null,
      between: async (above: bigint | null, below: bigint, limit: number) =>
        versions
          .filter(({ kind, number }) => kind === 'file' && number > (above ?? 0n) && number < below)
          .reverse()
          .slice(0, limit),
      list: async () => [...versions].reverse(),
      hasContent: async (kind: Version['kind'], content: string) =>
        versions.some((each) => each.kind === kind && each.content === content),
      addFile: async (content: string, madeBy: string) => {
        const last = newest('file');
        return last?.content === content ? last.number : add('file', content, madeBy);
      },
    },
  };
}

/** A process whose file is a price. It accepts those of `accepts` alone. */
function processOf(
  shared: ReturnType<typeof ledgerOfVersions>,
  clock: { nowMs: number },
  {
    file = '0.02',
    accepts = () => true,
    dearest = '~',
  }: { file?: string; accepts?: (content: string) => boolean; dearest?: string } = {},
) {
  const disk = { content: file, changedAtMs: START_MS - 1, reads: 0 };
  const sold = (priceUsd: string) => ({ services: [{ ...SERVICE, priceUsd }], tags: {}, leftOut: [] });
  const shelf = new Shelf(sold(file), () => clock.nowMs);
  const onDisk: StockFile = {
    name: 'farebox.config.yaml',
    atStart: file,
    stateAtStart: file,
    async read() {
      disk.reads += 1;
      if (disk.content === 'bad') throw new StockRefused('farebox.config.yaml:1:1 is bad');
      return disk.content;
    },
    state: async () => disk.content,
    changedAtMs: async () => disk.changedAtMs,
  };
  const source: StockSource = {
    own: [SERVICE],
    file: onDisk,
    fileRules: new Map(),
    make(content, rules: ServiceRules) {
      if (content !== null && !accepts(content)) throw new StockRefused(`${content} is not for us`);
      const price = rules.get(SERVICE.path)?.priceMicros;
      if (price === 666n) throw new StockRefused('that price is not for us');
      return {
        stock: sold(price === undefined || price === null ? (content ?? '') : `by rule ${price}`),
        fileRules: new Map(),
        enter() {},
      };
    },
  };
  const lines: unknown[] = [];
  const keeper = new StockKeeper({
    shelf,
    source,
    store: shared.store,
    refuses: ([service]) => ((service?.priceUsd ?? '') > dearest ? 'a part cannot sell that' : null),
    host: 'host',
    logger: {
      info() {},
      warn: (line: unknown) => lines.push(line),
      error: (line: unknown) => lines.push(line),
    },
    nowMs: () => clock.nowMs,
  });
  return { keeper, disk, lines, price: () => shelf.services[0]?.priceUsd };
}

function stage() {
  const clock = { nowMs: START_MS };
  return { clock, shared: ledgerOfVersions(clock) };
}

const ruled = (price: string) => JSON.stringify({ [SERVICE.path]: { price } });

test('a file becomes a version at a start that is news, and one that was left behind does not', async () => {
  const { clock, shared } = stage();
  const first = processOf(shared, clock);
  await first.keeper.start();
  await processOf(shared, clock).keeper.start();
  assert.deepEqual(
    shared.versions.map(({ content, madeBy }) => [content, madeBy]),
    [['0.02', 'a start on host']],
  );
  clock.nowMs += 10;
  await processOf(shared, clock, { file: '0.03' }).keeper.start();
  const behind = processOf(shared, clock);
  await behind.keeper.start();
  assert.deepEqual([behind.price(), behind.lines.length, shared.versions.length], ['0.03', 1, 2]);
  const meant = processOf(shared, clock);
  meant.disk.changedAtMs = clock.nowMs + 1;
  await meant.keeper.start();
  assert.deepEqual([meant.price(), shared.versions.length], ['0.02', 3]);
});

test('what one process reads anew, the others follow; a bad file changes nothing, and says why until it is good', async () => {
  const { clock, shared } = stage();
  const [one, other] = [processOf(shared, clock), processOf(shared, clock)];
  await Promise.all([one.keeper.start(), other.keeper.start()]);
  one.disk.content = 'bad';
  await one.keeper.reload('SIGHUP');
  assert.deepEqual(one.keeper.refusal, {
    version: null,
    reason: 'farebox.config.yaml:1:1 is bad',
    atMs: START_MS,
  });
  one.disk.content = '0.03';
  await one.keeper.reload('SIGHUP');
  assert.equal(one.keeper.refusal, null);
  await other.keeper.follow();
  assert.deepEqual([one.price(), other.price(), other.keeper.served.file], ['0.03', '0.03', 2n]);
  assert.equal(shared.versions[1]?.madeBy, 'SIGHUP on host');
  // The file of the other one is still what it was. Told so, it counts again.
  await other.keeper.reload('SIGHUP');
  await one.keeper.follow();
  assert.deepEqual([one.price(), shared.versions.length], ['0.02', 3]);
});

test('a process that does not accept the newest version serves the newest that it accepts, and asks no more until another comes', async () => {
  const { clock, shared } = stage();
  const strict = processOf(shared, clock, { accepts: (content) => content !== '0.05' && content !== '0.06' });
  await strict.keeper.start();
  for (const content of ['0.03', '0.04', '0.05', '0.06']) await shared.store.addFile(content, 'another');
  await strict.keeper.follow();
  assert.deepEqual([strict.price(), strict.keeper.served.file, strict.keeper.newest.file], ['0.04', 3n, 5n]);
  assert.deepEqual(
    [strict.keeper.refusal?.version, strict.keeper.refusal?.reason],
    [5n, '0.06 is not for us'],
  );
  const told = strict.lines.length;
  await strict.keeper.follow();
  assert.equal(strict.lines.length, told);
  await shared.store.addFile('0.07', 'another');
  await strict.keeper.follow();
  assert.deepEqual([strict.price(), strict.keeper.refusal], ['0.07', null]);
});

test('the operators’ rules come in force beside a file that is refused, and a file beside rules that are', async () => {
  const { clock, shared } = stage();
  const strict = processOf(shared, clock, { accepts: (content) => content !== '0.05' });
  await strict.keeper.start();
  await shared.store.addFile('0.05', 'another');
  shared.addRules(ruled('0.000007'));
  await strict.keeper.follow();
  assert.deepEqual([strict.price(), strict.keeper.served], ['by rule 7', { file: 1n, rules: 3n }]);
  assert.equal(strict.keeper.refusal?.version, 2n);
  const other = processOf(shared, clock, { file: '0.02', accepts: (content) => content !== '0.05' });
  await other.keeper.start();
  assert.equal(other.price(), 'by rule 7');

  shared.addRules(ruled('0.000666'));
  await strict.keeper.follow();
  assert.deepEqual([strict.price(), strict.keeper.refusal?.version], ['by rule 7', 4n]);
  await shared.store.addFile('0.08', 'another');
  shared.addRules('{}');
  await strict.keeper.follow();
  assert.deepEqual([strict.price(), strict.keeper.refusal], ['0.08', null]);
});

test('a content that cannot be sold here becomes no version, whoever of the parts says so', async () => {
  const { clock, shared } = stage();
  const one = processOf(shared, clock, { accepts: (content) => content !== 'unfit', dearest: '0.5' });
  await one.keeper.start();
  for (const [content, reason] of [
    ['unfit', 'unfit is not for us'],
    ['0.7', 'a part cannot sell that'],
  ] as const) {
    one.disk.content = content;
    await one.keeper.reload('SIGHUP');
    assert.deepEqual([one.price(), shared.versions.length, one.keeper.refusal?.reason], ['0.02', 1, reason]);
  }
});

test('a file that is refused is forgotten once a version that came after it is in force, and not by the one before', async () => {
  const { clock, shared } = stage();
  const [one, other] = [processOf(shared, clock), processOf(shared, clock)];
  await one.keeper.start();
  await other.keeper.start();
  other.disk.content = 'bad';
  await other.keeper.reload('SIGHUP');
  shared.addRules(ruled('0.5'));
  await other.keeper.follow();
  assert.match(
    other.keeper.refusal?.reason ?? '',
    /is bad/,
    'what an operator sets says nothing of the file',
  );
  one.disk.content = '0.06';
  await one.keeper.reload('SIGHUP');
  await other.keeper.follow();
  assert.equal(other.keeper.refusal, null);
});

test('a file that changes is read once it has stopped changing, and many signals are one reading', async () => {
  const { clock, shared } = stage();
  const one = processOf(shared, clock);
  await one.keeper.start();
  for (const [content, price] of [
    ['0.02', '0.02'],
    ['0.0', '0.02'],
    ['0.03', '0.02'],
    ['0.03', '0.03'],
    ['0.03', '0.03'],
  ] as const) {
    one.disk.content = content;
    await one.keeper.watch();
    assert.equal(one.price(), price, content);
  }
  assert.equal(one.disk.reads, 1);
  await Promise.all(Array.from({ length: 50 }, () => one.keeper.reload('SIGHUP')));
  assert.equal(one.disk.reads, 2);
});

test('rules that could not come in force are refused before they are written down', async () => {
  const { clock, shared } = stage();
  const one = processOf(shared, clock);
  await one.keeper.start();
  const rule = { isAvailable: null, isSoldByMpp: null };
  assert.throws(
    () => one.keeper.assertAcceptable(new Map([[SERVICE.path, { ...rule, priceMicros: 666n }]])),
    /that price is not for us/,
  );
  one.keeper.assertAcceptable(new Map([[SERVICE.path, { ...rule, priceMicros: 7n }]]));
  assert.equal(one.price(), '0.02');
});
