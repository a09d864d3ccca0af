/**
 * `npm run probe`: asks every configured source once and says which answer and still fit their schema. With `--live`, at
 * their public addresses. Where the yield portal on Solana is on, each of its nodes is asked all that the portal needs.
 */
import { parseArgs } from 'node:util';
import { upstreamsOf } from '@farebox/catalogue/upstreams/declared';
import { connectUpstreams } from '@farebox/catalogue/upstreams/index';
import { atPublicAddresses, type ProbedSource, probeSources } from '@farebox/catalogue/upstreams/probe';
import { type ConfigOf, readConfig } from '@farebox/core/config';
import { runCommand } from '@farebox/process/run-command';
import { probeNode } from '@farebox/yield/solana/probe';
import { DECLARED } from '../app.ts';

/** The words for each verdict; those that ask for an eye stand out. */
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
    const isPortalFit = await portalFits(config, configs.solana.baseUrl);
    return isPortalFit && sources.every(({ verdict }) => verdict === 'fits' || verdict === 'skipped') ? 0 : 1;
  } finally {
    await upstreams.close();
  }
});

/** Asks the nodes of the yield portal on Solana, and prints each method. @returns whether all fit; true where the portal is off */
async function portalFits({ solanaYield }: ConfigOf<typeof DECLARED>, first: string | null) {
  if (solanaYield.settings.treasury === null) return true;
  const urls = [...(first === null ? [] : [first]), ...solanaYield.secrets.reveal().furtherNodes];
  const found = await Promise.all(urls.map((url) => probeNode(url, Date.now)));
  for (const [index, methods] of found.entries())
    for (const { method, wrong } of methods)
      process.stdout.write(
        `${`solana-yield node ${index + 1}`.padEnd(22)}${method.padEnd(30)}${wrong === null ? SHOWN.fits : `${SHOWN.fails}${wrong}`}\n`,
      );
  return found.flat().every(({ wrong }) => wrong === null);
}
