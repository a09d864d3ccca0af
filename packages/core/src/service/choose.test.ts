import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseServices } from './choose.ts';
import type { Service } from './define.ts';

const ALL = [
  ['ping', 'Discovery'],
  ['token-price', 'Trading Intelligence'],
  ['token-sentiment', 'Trading Intelligence'],
  ['iot-sensor-reading', 'IoT & DePIN'],
  ['iot-bulk-data', 'IoT & DePIN'],
].map(([path = '', tag]) => ({ path, tag: tag as Service['tag'] }));
const paths = ALL.map(({ path }) => path);

const chosen = (...entries: string[]) => {
  const { sold, leftOut, problems } = chooseServices(ALL, entries);
  assert.deepEqual(problems, []);
  assert.deepEqual([...sold.map(({ path }) => path), ...leftOut].sort(), [...paths].sort());
  return sold.map(({ path }) => path);
};

test('services are chosen by names, tags and patterns, and keep their order', () => {
  assert.deepEqual(chosen(), paths);
  assert.deepEqual(chosen('token-price', 'ping'), ['ping', 'token-price']);
  assert.deepEqual(chosen('IoT & DePIN'), ['iot-sensor-reading', 'iot-bulk-data']);
  assert.deepEqual(chosen('iot-depin'), ['iot-sensor-reading', 'iot-bulk-data']);
  assert.deepEqual(chosen('token-*', '*-data'), ['token-price', 'token-sentiment', 'iot-bulk-data']);
  assert.deepEqual(chosen('*'), paths);
});

test('an exclamation mark excludes services, from everything or from what else is named', () => {
  assert.deepEqual(chosen('!token-*'), ['ping', 'iot-sensor-reading', 'iot-bulk-data']);
  assert.deepEqual(chosen('trading intelligence', '! token-price'), ['token-sentiment']);
});

test('an entry that matches nothing is reported, with a suggestion', () => {
  const { problems } = chooseServices(ALL, ['tokn-price', 'ping', 'Tradng Intelligence', '!x*', 'p.ng', '(']);
  assert.equal(problems.length, 5);
  assert.match(problems[0] ?? '', /^"tokn-price" is no service.* nearest names are token-price,/);
  assert.match(problems[1] ?? '', /^"Tradng Intelligence" .* trading-intelligence/);
  assert.match(problems[2] ?? '', /^"x\*" is no/);
  assert.deepEqual(chooseServices(ALL, ['!*']).problems, ['leaves nothing to sell']);
});
