/** Asks published validators, in tests, about an OpenAPI document. */
import SwaggerParser from '@apidevtools/swagger-parser';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Validator } from '@seriousme/openapi-schema-validator';
import { validate } from 'mppx/discovery';

/** The rules that Redocly recommends, none of them switched off. */
const redocly = createConfig({ extends: ['recommended'] });

/** Every error and every warning, each in a line that begins with its validator's name; none for a good document. */
export async function findingsOf(document: object): Promise<string[]> {
  // As a reader gets it, and a copy for each: some of them resolve references in place.
  const source = JSON.stringify(document);
  const copy = () => JSON.parse(source);
  const [linted, thrown, { errors = [] }] = await Promise.all([
    lintFromString({ source, config: await redocly }),
    SwaggerParser.validate(copy()).then(
      () => [],
      (error: Error) => [error.message],
    ),
    new Validator().validate(copy()),
  ]);
  return [
    ...linted.map(({ severity, ruleId, message, location }) => {
      const at = location.map(({ pointer }) => pointer ?? '').join(', ');
      return `redocly: ${severity} of ${ruleId}: ${message} (${at})`;
    }),
    ...thrown.map((message) => `swagger-parser: ${message}`),
    ...[errors].flat().map((error) => `openapi-schema-validator: ${JSON.stringify(error)}`),
    ...validate(copy()).map(({ severity, message, path }) => `mppx: ${severity}: ${message} (${path})`),
  ];
}
