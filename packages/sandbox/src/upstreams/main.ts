/**
 * Runs the sandbox's upstreams alone: `node main.ts [--port 4010] [--host 127.0.0.1] [--seed 1]`. The variables PORT, HOST and
 * SEED set what is not given as an option.
 */
import { parseArgs } from 'node:util';
import { createUpstreamSandbox } from './server.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: process.env.PORT ?? '4010' },
    host: { type: 'string', default: process.env.HOST ?? '127.0.0.1' },
    seed: { type: 'string', default: process.env.SEED ?? '1' },
  },
});
const sandbox = createUpstreamSandbox({
  host: values.host,
  port: Number(values.port),
  seed: Number(values.seed),
  log: (message) => console.log(message),
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void sandbox.stop());
}
await sandbox.start();
