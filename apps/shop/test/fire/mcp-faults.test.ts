/** Buys as tools of MCP under the faults that any rail must stand: the same rows of the fault table as over HTTP. */
import { after, before, describe, test } from 'node:test';
import type { PrivateKeyAccount } from 'viem/accounts';
import { METHODS, type MppWorld, startMppWorld } from '../mpp.fixture.ts';
import { type CreditsStage, setCreditsStage } from './credits-stage.fixture.ts';
import { type FaultStage, prove, rowsOfAnyRail } from './fault-table.fixture.ts';
import { type Stage as MppStage, setStage as setMppStage } from './mpp-stage.fixture.ts';
import { mppOverMcp, overMcp } from './over-mcp.fixture.ts';
import { type Stage, setStage } from './x402-stage.fixture.ts';

let world: MppWorld;
before(async () => {
  world = await startMppWorld();
});
after(() => world?.stop());

/** @param toolsOf how a stage is played on by tool calls */
function stands<Of extends FaultStage<Payer>, Payer>(
  name: string,
  set: () => Promise<Of>,
  toolsOf: (stage: Of) => Of = (stage) => overMcp<Payer, Of>(stage),
): void {
  describe(name, () => {
    let stage: Of;
    let asTools: Of;
    before(async () => {
      stage = await set();
      asTools = toolsOf(stage);
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
stands<Stage, PrivateKeyAccount>('by x402', () =>
  setStage({ chain: world.base.chain, settledBy: 'own settler' }),
);
for (const method of METHODS)
  stands<MppStage, PrivateKeyAccount>(`by MPP (${method})`, () => setMppStage(world, method), mppOverMcp);
