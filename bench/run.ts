/**
 * `npm run bench`: how fast the money path is, as ratios against named opponents that run at the same time on the same
 * machine. `--only a,c` measures some parts, `--quick` only checks that it works, `--deep` lets (j) and (u) go on to
 * 20 million past calls, `--json` prints the result for programs, and `--markdown` prints it for `docs/figures.md`.
 */
import { parseArgs } from 'node:util';
import { measureAudit } from './audit.ts';
import { measureDebits } from './debits.ts';
import { measureDevices } from './devices.ts';
import { measureHistory } from './history.ts';
import { measureHttpCalls } from './http-calls.ts';
import { measureJobs } from './jobs.ts';
import { startLoad } from './load.ts';
import { measureLockedAccount } from './locked-account.ts';
import { measureLongHistory } from './long-history.ts';
import { describeMachine } from './machine.ts';
import { measureMemory } from './memory.ts';
import { measureNames } from './names.ts';
import { measureMpp } from './paid-mpp.ts';
import { measurePaidX402 } from './paid-x402.ts';
import { measurePingBesideAudits } from './ping-beside-audits.ts';
import { DEEP_LONG_AGO, DEEP_PAST_CALLS, FULL, QUICK } from './plan.ts';
import { measurePrepaid } from './prepaid.ts';
import { measureRegistry } from './registry.ts';
import { asMarkdown, asText, type Part, type Report } from './report.ts';
import { createResources, type Resources } from './resources.ts';
import { measureRoutes } from './routes.ts';
import { measureSolanaPortal } from './solana-portal.ts';
import { measureToolCalls } from './tool-calls.ts';
import { measureTraces } from './traces.ts';
import { measureUnpaid } from './unpaid.ts';
import { measureVerification } from './verification.ts';
import { measureWebhooks } from './webhooks.ts';

const PARTS: readonly Part[] = [
  'a',
  'b',
  'c',
  'd',
  'e',
  'f',
  'g',
  'h',
  'i',
  'j',
  'k',
  'l',
  'm',
  'n',
  'o',
  'p',
  'q',
  'r',
  's',
  't',
  'u',
];
const USAGE =
  'usage: npm run bench -- [--only a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u] [--quick] [--deep] [--rounds 5] [--json | --markdown]\n' +
  '       npm run bench -- --only audit --corpus <folder> [--clean <folder>]… [--solhint <folder>]\n' +
  '       npm run bench -- --only names --list <file of names>…\n';

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: PARTS.join(',') },
    quick: { type: 'boolean', default: false },
    deep: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    corpus: { type: 'string' },
    clean: { type: 'string', multiple: true, default: [] },
    solhint: { type: 'string' },
    list: { type: 'string', multiple: true, default: [] },
  },
});
if (values.only === 'audit') {
  process.stdout.write(measureAudit(values.corpus ?? '', values.clean, values.solhint ?? null));
  process.exit(0);
}
if (values.only === 'names') {
  process.stdout.write(await measureNames(values.list));
  process.exit(0);
}
const only = values.only.split(',');
const base = values.quick ? QUICK : FULL;
const plan = {
  ...base,
  rounds: Number(values.rounds ?? base.rounds),
  pastCalls: values.deep ? DEEP_PAST_CALLS : base.pastCalls,
  longAgo: { ...base.longAgo, ...(values.deep ? { many: DEEP_LONG_AGO } : {}) },
};
const isPart = (name: string): name is Part => PARTS.some((part) => part === name);
if (!only.every(isPart) || !Number.isInteger(plan.rounds) || plan.rounds < 1) {
  process.stderr.write(USAGE);
  process.exit(2);
}
const wanted = new Set<Part>(only.filter(isPart));

let current: Resources | undefined;
let interrupted = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interrupted = true;
    void (current?.release() ?? Promise.resolve()).finally(() => process.exit(130));
  });
}

/** Runs one part with its own resources: whatever it started has ended before the next part measures. */
async function withResources<Result>(
  title: string,
  work: (resources: Resources) => Promise<Result>,
): Promise<Result> {
  process.stderr.write(`bench: ${title} ...\n`);
  const resources = createResources();
  current = resources;
  try {
    return await work(resources);
  } finally {
    await resources.release();
  }
}

/** Parts that send load to a server of ours, and report something beside their lines. */
const BESIDE_LOAD = [
  { part: 'k', title: 'the paid ping beside audits', measure: measurePingBesideAudits },
  { part: 'l', title: 'paid calls while another account is held', measure: measureLockedAccount },
  { part: 'm', title: 'paid calls against prepaid credits of the usual kind', measure: measurePrepaid },
  { part: 'n', title: 'paid tool calls against the same over HTTP', measure: measureToolCalls },
  { part: 'o', title: 'the Solana portal against its node', measure: measureSolanaPortal },
  { part: 's', title: 'routes of another API against the same bytes for nothing', measure: measureRoutes },
  { part: 't', title: 'paid calls of which one in a hundred is traced', measure: measureTraces },
  { part: 'u', title: 'a long history against a short one', measure: measureLongHistory },
] as const;

/** Parts that bring a load of their own. */
const BY_THEMSELVES = [
  { part: 'g', title: 'verification of payments against viem', measure: measureVerification },
  {
    part: 'h',
    title: 'calls paid on a chain against the published middleware',
    measure: measurePaidX402,
  },
  {
    part: 'i',
    title: 'MPP challenges and paid calls against the reference library',
    measure: measureMpp,
  },
  { part: 'p', title: 'devices that report against the broker alone', measure: measureDevices },
  { part: 'q', title: 'start and memory with every service against one', measure: measureRegistry },
  { part: 'r', title: 'messages of webhooks against signed posts alone', measure: measureWebhooks },
] as const;

async function run(): Promise<Report> {
  const { rounds, roundMs } = plan;
  const report: Report = {
    machine: await describeMachine(),
    plan: { rounds, 'seconds a round': roundMs / 1_000 },
    lines: [],
    memory: [],
    notes: [],
  };
  const httpParts = (['a', 'b'] as const).filter((part) => wanted.has(part));
  if (httpParts.length > 0) {
    const lines = await withResources('paid calls and 402s against a bare route', async (resources) =>
      measureHttpCalls(resources, await startLoad(resources), plan, httpParts),
    );
    report.lines.push(...lines);
  }
  if (wanted.has('c')) {
    const found = await withResources('debits against one transaction each', (resources) =>
      measureDebits(resources, plan),
    );
    report.lines.push(...found.lines);
    report.notes.push(...found.notes);
  }
  if (wanted.has('d')) {
    const found = await withResources(
      `paid calls after ${plan.pastTransfers.toLocaleString('en')} transfers`,
      async (resources) => measureHistory(resources, await startLoad(resources), plan),
    );
    report.lines.push(...found.lines);
    report.notes.push(...found.notes);
  }
  if (wanted.has('e')) {
    report.memory = await withResources('memory of npm start', async (resources) =>
      measureMemory(resources, await startLoad(resources)),
    );
    if (report.memory.length === 0) report.notes.push('(e) is measured on Linux only');
  }
  if (wanted.has('f')) {
    const found = await withResources('402s with offers against middleware', async (resources) =>
      measureUnpaid(resources, await startLoad(resources), plan),
    );
    report.lines.push(...found.lines);
    report.notes.push(...found.notes);
  }
  if (wanted.has('j')) {
    const lines = await withResources('jobs beside past calls', (resources) => measureJobs(resources, plan));
    report.lines.push(...lines);
  }
  for (const { part, title, measure } of BY_THEMSELVES) {
    if (!wanted.has(part)) continue;
    const found = await withResources(title, (resources) => measure(resources, plan));
    report.lines.push(...found.lines);
    report.notes.push(...found.notes);
  }
  for (const { part, title, measure } of BESIDE_LOAD) {
    if (!wanted.has(part)) continue;
    const found = await withResources(title, async (resources) =>
      measure(resources, await startLoad(resources), plan),
    );
    report.lines.push(...found.lines);
    report.notes.push(...found.notes);
  }
  return report;
}

try {
  const report = await run();
  const print = values.json
    ? (found: Report) => `${JSON.stringify(found, null, 2)}\n`
    : values.markdown
      ? asMarkdown
      : asText;
  process.stdout.write(print(report));
  process.exit(0);
} catch (error) {
  // After an interruption everything fails because it was ended, so no failure is reported.
  if (!interrupted) {
    process.stderr.write(`bench: ${error instanceof Error ? (error.stack ?? error.message) : error}\n`);
    process.exit(1);
  }
}
