import { Counter, Registry } from 'prom-client';

/** `kept`: out of memory; `drawn`: fetched for this look; `failed`: its source or its thread did not give it. */
export type PictureOutcome = 'kept' | 'drawn' | 'failed';

/** The metrics of pictures that are looked at. */
export function createPictureMetrics() {
  const registry = new Registry();
  const looks = new Counter({
    name: 'farebox_picture_looks_total',
    help: 'Looks at pictures of answers: out of memory, drawn for it, or failed',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return { registry, look: (outcome: PictureOutcome) => looks.inc({ outcome }) };
}
