/** No answer holds a text of which nobody has said whether outsiders write it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';
import { outsiderText, UNTRUSTED } from '../../../core/src/service/fields.ts';
import { type JsonSchema, outputSchemaOf, propertiesOf } from '../../../core/src/service/json-schema.ts';
import { untrustedPathsOf } from '../../../core/src/service/untrusted.ts';
import { OWN_NAMES, OWN_TEXTS } from './own-texts.fixture.ts';
import { loadServices } from './registry.ts';

const services = await loadServices();

/** The places of texts that may say anything, by path. Objects of any fields are such places too. */
function freeTexts(schema: JsonSchema, path = ''): string[] {
  if (schema[UNTRUSTED] === true || 'const' in schema || 'enum' in schema) return [];
  const branches = [schema.anyOf, schema.oneOf, schema.allOf].filter(Array.isArray).flat() as JsonSchema[];
  if (branches.length > 0) return branches.flatMap((each) => freeTexts(each, path));
  const types = [schema.type].flat();
  const below = [
    ...Object.entries(propertiesOf(schema)).flatMap(([name, field]) => freeTexts(field, `${path}/${name}`)),
    ...[schema.items, schema.additionalProperties]
      .filter((each) => typeof each === 'object' && each !== null)
      .flatMap((each) => freeTexts(each as JsonSchema, `${path}/*`)),
  ];
  const isText = types.includes('string') && schema.pattern === undefined && schema.format === undefined;
  const isOpen = !('properties' in schema) && typeof schema.additionalProperties !== 'object';
  const isAny = schema.type === undefined || (types.includes('object') && isOpen);
  return isText || isAny ? [path, ...below] : below;
}

const nameIn = (path: string) => path.split('/').findLast((step) => step !== '*') ?? '';

test('every text of an answer is outsiders’, one of some words, of a form, or listed as ours', () => {
  const undeclared = services.flatMap((service) =>
    freeTexts(outputSchemaOf(service))
      .filter((path) => !OWN_NAMES.has(nameIn(path)) && !OWN_TEXTS[service.path]?.includes(path))
      .map((path) => `${service.path} ${path}`),
  );
  assert.deepEqual(undeclared, []);
});

test('nothing is listed as ours that is not there', () => {
  const free = new Map(services.map((service) => [service.path, freeTexts(outputSchemaOf(service))]));
  const names = new Set([...free.values()].flat().map(nameIn));
  assert.deepEqual(
    [...OWN_NAMES].filter((name) => !names.has(name)),
    [],
  );
  const gone = Object.entries(OWN_TEXTS).flatMap(([path, texts]) =>
    texts.filter((text) => free.get(path)?.includes(text) !== true).map((text) => `${path} ${text}`),
  );
  assert.deepEqual(gone, []);
});

test('an undeclared text is found at any depth, and a declared one is not', () => {
  const schema = z.toJSONSchema(
    z.object({
      list: z.array(z.object({ a: z.string().nullable(), b: outsiderText(5).nullable(), c: z.enum(['x']) })),
      map: z.record(z.string(), z.string()),
      any: z.record(z.string(), z.unknown()),
      day: z.iso.date(),
      hex: z.string().regex(/^0x$/),
    }),
  ) as JsonSchema;
  assert.deepEqual(freeTexts(schema), ['/list/*/a', '/map/*', '/any/*']);
});

test('names, headlines, questions and reasons are outsiders’', () => {
  for (const [path, texts] of Object.entries({
    'token-metadata': ['/name', '/symbol'],
    'token-price': ['/name', '/symbol'],
    'transaction-builder': ['/simulation/revertReason'],
    'polymarket-search': ['/results/*/title', '/results/*/outcomes/*'],
    'kalshi-odds': ['/market/title', '/market/resolutionRule'],
    'sentiment-analysis': ['/articles/*/title', '/articles/*/url'],
    'smart-contract-audit': ['/findings/*/snippet', '/findings/*/contract'],
    'contract-scan': ['/verifiedAs/name', '/trade/reason'],
    'fleet-telematics': ['/data/vehicles/*/name'],
    'weather-station-data': ['/data/stationName', '/data/description'],
    'ai-inference': ['/content'],
    'satellite-earthdata': ['/data'],
  })) {
    const service = services.find((each) => each.path === path);
    assert.ok(service, path);
    for (const text of texts) assert.ok(untrustedPathsOf(service).includes(text), `${path} ${text}`);
  }
});
