/** `npm run probe`: asks every configured upstream once and says which answer and still fit their schema. */

import { runCommand } from '../../../../packages/process/src/run-command.ts';
import { DECLARED } from '../app.ts';
import { readConfig } from '../config.ts';
import { upstreamsOf } from '../upstreams/declared.ts';
import type { UpstreamDefinition } from '../upstreams/define.ts';
import { connectUpstreams, UPSTREAM_NAMES, UPSTREAMS } from '../upstreams/index.ts';

await runCommand('npm run probe', async () => {
  const config = readConfig(process.env, DECLARED);
  const configs = upstreamsOf(config.sources, config.terms.settings.accepted);
  const upstreams = connectUpstreams(configs, {
    userAgent: 'farebox-probe',
    acceptSandbox: !config.house.production,
    nowMs: Date.now,
  });
  const lines = await Promise.all(
    UPSTREAM_NAMES.map(async (name) => {
      const { reason, state } = upstreams.health(name);
      if (state === 'not_configured') return { name, ok: true, line: reason ?? 'not configured' };
      const { baseUrl } = configs[name];
      const startedAtMs = performance.now();
      try {
        await (UPSTREAMS[name] as unknown as UpstreamDefinition<unknown>).probe(
          upstreams.apis[name],
          Date.now(),
        );
        return {
          name,
          ok: true,
          line: `fits   ${Math.round(performance.now() - startedAtMs)} ms  ${baseUrl}`,
        };
      } catch (error) {
        return {
          name,
          ok: false,
          line: `FAILS  ${baseUrl}  ${error instanceof Error ? error.message : error}`,
        };
      }
    }),
  );
  for (const { name, line } of lines) process.stdout.write(`${name.padEnd(16)}${line}\n`);
  await upstreams.close();
  return lines.every(({ ok }) => ok) ? 0 : 1;
});
