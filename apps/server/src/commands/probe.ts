/**
 * `npm run probe`: asks every configured source once and says which answer and still fit their schema. With `--live`, at
 * their public addresses.
 */
import { parseArgs } from 'node:util';
import { runCommand } from '../../../../packages/process/src/run-command.ts';
import { DECLARED } from '../app.ts';
import { readConfig } from '../config.ts';
import { upstreamsOf } from '../upstreams/declared.ts';
import { connectUpstreams } from '../upstreams/index.ts';
import { atPublicAddresses, type ProbedSource, probeSources } from '../upstreams/probe.ts';

/** What asks for an eye stands out. */
const SHOWN: Readonly<Record<ProbedSource['verdict'], string>> = {
  fits: 'fits    ',
  skipped: '',
  unfit: 'UNFIT   ',
  silent: 'SILENT  ',
  fails: 'FAILS   ',
};

await runCommand('npm run probe [-- --live]', async () => {
  const { live } = parseArgs({ options: { live: { type: 'boolean', default: false } } }).values;
  const config = readConfig(process.env, DECLARED);
  const configured = upstreamsOf(config.sources, config.terms.settings.accepted);
  const configs = live ? atPublicAddresses(configured) : configured;
  const upstreams = connectUpstreams(configs, {
    userAgent: 'farebox-probe',
    acceptSandbox: !config.house.production,
    nowMs: Date.now,
  });
  try {
    const sources = await probeSources(upstreams, configs, Date.now);
    for (const { name, verdict, about } of sources)
      process.stdout.write(`${name.padEnd(18)}${SHOWN[verdict]}${about}\n`);
    return sources.every(({ verdict }) => verdict === 'fits' || verdict === 'skipped') ? 0 : 1;
  } finally {
    await upstreams.close();
  }
});
