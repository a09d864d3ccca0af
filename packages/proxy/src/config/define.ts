import type { ConfigInput } from './schema.ts';

/**
 * Gives a configuration in TypeScript its type: `export default defineConfig({ … })`. It holds plain data and no functions,
 * because it is read in a thread of its own.
 *
 * @example
 * ```ts
 * import { defineConfig } from '@farebox/proxy/config/define';
 *
 * export default defineConfig({
 *   upstreams: { weather: { url: 'http://127.0.0.1:9000', prefix: '/' } },
 *   routes: { 'POST /v1/forecast': { upstream: 'weather', price: '0.02' } },
 * });
 * ```
 */
export function defineConfig(config: ConfigInput): ConfigInput {
  return config;
}
