/** (k) the paid ping while one audit runs and seven wait, against the paid ping alone. */
import { makeKeys, startFarebox } from './farebox.ts';
import type { Load } from './load.ts';
import type { Plan } from './plan.ts';
import type { ComparedLine } from './report.ts';
import type { Resources } from './resources.ts';
import { alternate, compare } from './rounds.ts';

const CONNECTIONS = 4;
/** One audit runs, and the others wait. */
const AUDITS = 8;
const GOAL = { below: 2 };
/** Functions in each audited contract: enough that reading it takes as long as starting the compiler. */
const FUNCTIONS = 150;

export async function measurePingBesideAudits(
  resources: Resources,
  load: Load,
  plan: Plan,
): Promise<{ lines: ComparedLine[]; notes: string[] }> {
  const dataDir = resources.folder();
  const url = await startFarebox(resources, dataDir);
  const apiKeys = await makeKeys(dataDir, 2);
  const ping = () =>
    load.send({
      url,
      path: '/x402/ping',
      body: '{}',
      apiKeys: apiKeys.slice(0, 1),
      connections: CONNECTIONS,
      until: { durationMs: plan.roundMs },
      expectStatus: 200,
    });
  let audits = 0;

  async function withAudits() {
    let over = false;
    // Each caller sends another source, because a known source would be no work.
    const callers = Array.from({ length: AUDITS }, async () => {
      while (!over) {
        audits += 1;
        const answer = await fetch(`${url}/x402/smart-contract-audit`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-api-key': apiKeys[1] ?? '' },
          body: JSON.stringify({ sourceCode: contractOf(audits) }),
        });
        const text = await answer.text();
        // With seven audits ahead a call may exceed its deadline; then it is not charged.
        if (![200, 503, 504].includes(answer.status))
          throw new Error(`an audit answered ${answer.status}: ${text.slice(0, 300)}`);
      }
    });
    const measured = await ping();
    over = true;
    await Promise.all(callers);
    return measured;
  }

  await ping();
  const found = await alternate(plan.rounds, withAudits, ping);
  const compared = (pick: 'perSecond' | 'p50Ms' | 'p99Ms') =>
    compare(
      found.ours.map((result) => result[pick]),
      found.opponent.map((result) => result[pick]),
    );
  return {
    lines: [
      {
        part: 'k',
        measured: `${CONNECTIONS} connections, p50`,
        unit: 'ms',
        ...compared('p50Ms'),
        goal: null,
      },
      {
        part: 'k',
        measured: `${CONNECTIONS} connections, p99`,
        unit: 'ms',
        ...compared('p99Ms'),
        goal: GOAL,
      },
    ],
    notes: [`(k) ${audits} audits were asked for in ${plan.rounds} rounds`],
  };
}

function contractOf(number: number): string {
  const functions = Array.from(
    { length: FUNCTIONS },
    (_, i) =>
      `function f${i}(uint256 x) public returns (uint256) { if (x > ${i}) { s[x] += ${number}; } return s[x]; }`,
  );
  return `pragma solidity ^0.8.0; contract A${number} { mapping(uint256 => uint256) s; ${functions.join('\n')} }`;
}
