/** Buys by messages of A2A under the faults that any rail must stand: the same rows of the fault table as over HTTP. */
import { after, before, describe, test } from 'node:test';
import type { PrivateKeyAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../chain.fixture.ts';
import { type CreditsStage, setCreditsStage } from './credits-stage.fixture.ts';
import { type FaultStage, prove, rowsOfAnyRail } from './fault-table.fixture.ts';
import { overA2a } from './over-a2a.fixture.ts';
import { type Stage, setStage } from './x402-stage.fixture.ts';

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
});
after(() => chain?.stop());

function stands<Of extends FaultStage<Payer>, Payer>(
  name: string,
  version: '0.3' | '1.0',
  set: () => Promise<Of>,
): void {
  describe(name, () => {
    let stage: Of;
    let byMessages: Of;
    before(async () => {
      stage = await set();
      byMessages = overA2a<Payer, Of>(stage, version);
    });
    after(() => stage?.close());
    for (const row of rowsOfAnyRail<Of, Payer>())
      test(row.fault, async () => {
        await stage.reset();
        await prove(row, byMessages);
      });
  });
}

stands<CreditsStage, string>('with a key, in 1.0', '1.0', setCreditsStage);
stands<Stage, PrivateKeyAccount>('by x402, in 0.3', '0.3', () =>
  setStage({ chain, settledBy: 'own settler' }),
);
