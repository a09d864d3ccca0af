/** What any rail must stand, bought as tools of MCP: the same rows of the fault table as over HTTP. */
import { after, before, describe, test } from 'node:test';
import type { PrivateKeyAccount } from 'viem/accounts';
import { startTestChain, type TestChain } from '../chain.fixture.ts';
import { type CreditsStage, setCreditsStage } from './credits-stage.fixture.ts';
import { type FaultStage, prove, rowsOfAnyRail } from './fault-table.fixture.ts';
import { overMcp } from './over-mcp.fixture.ts';
import { type Stage, setStage } from './x402-stage.fixture.ts';

let chain: TestChain;
before(async () => {
  chain = await startTestChain();
});
after(() => chain?.stop());

function stands<Of extends FaultStage<Payer>, Payer>(name: string, set: () => Promise<Of>): void {
  describe(name, () => {
    let stage: Of;
    let asTools: Of;
    before(async () => {
      stage = await set();
      asTools = overMcp<Payer, Of>(stage);
    });
    after(() => stage?.close());
    for (const row of rowsOfAnyRail<Of, Payer>())
      test(row.fault, async () => {
        await stage.reset();
        await prove(row, asTools);
      });
  });
}

stands<CreditsStage, string>('with a key', setCreditsStage);
stands<Stage, PrivateKeyAccount>('by x402', () => setStage({ chain, settledBy: 'own settler' }));
