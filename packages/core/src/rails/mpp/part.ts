import type { Configured } from '../../declared.ts';
import type { CallMetrics } from '../../paid-call/metrics.ts';
import { type Sales, servicesDoor } from '../../paid-call/part.ts';
import type { Rail } from '../../paid-call/rail.ts';
import type { House, Part } from '../../part.ts';
import type { GasTanks } from '../../relayer/gas-tanks.ts';
import type { Service } from '../../service/define.ts';
import type { AuthorizationSettler } from '../evm/settler.ts';
import { watchRails } from '../on-chain/standing.ts';
import { MPP } from './declared.ts';
import { mppDoor } from './door.ts';
import { type MppRail, openMppRail } from './rail.ts';
import { mppAtTheWrongDoor } from './wrong-door.ts';

export { MPP };

/** Base, where the method evm settles. */
const CHAIN_ID = 8453;
const LOOKED_AT_EVERY_MS = 30_000;

/** Payment by the Machine Payments Protocol; `mpp` is null while it is off. */
export function openMpp(
  house: House,
  { settings, secrets }: Configured<typeof MPP.variables>,
  needs: {
    x402: { authorizations(chainId: number): AuthorizationSettler | null };
    gas: GasTanks;
    settlement: CallMetrics['settlement'];
  },
): Part & {
  mpp: MppRail | null;
  /** Rails for the other doors, which tell an MPP credential where it belongs. */
  elsewhere: readonly Rail[];
  /** The rail itself; none while it is off. */
  rails: readonly Rail[];
  /** What documents say about MPP; null while it is off, or when it can buy nothing. */
  offer(): ReturnType<typeof offerOf>;
} {
  const { pools, baseUrl, sandbox, shelf, logger, nowMs } = house;
  const { x402, gas, settlement } = needs;
  const secretKeys = () => secrets.reveal().secretKeys;
  const config = { ...settings, ...secrets.reveal(), secretKeys };
  const mpp = openMppRail(config, new URL(baseUrl).hostname, {
    sql: pools.sql,
    evm: x402.authorizations(CHAIN_ID),
    gas,
    sandbox,
    nowMs,
    report: settlement,
  });
  const soldByMpp = (path: string) => shelf.find(path)?.mpp === true;
  const watch = watchRails(mpp?.networks ?? [], { nowMs, logger });
  return {
    name: 'mpp',
    railStandings: watch.standings,
    jobs: [{ name: 'look-at-tempo', intervalMs: LOOKED_AT_EVERY_MS, run: watch.look }],
    requestHeaders: ['Accept-Payment'],
    mpp,
    elsewhere: mpp === null ? [] : [mppAtTheWrongDoor({ baseUrl, soldByMpp })],
    rails: mpp === null ? [] : [mpp.rail],
    offer: () => (shelf.services.some(isSoldByMpp) ? offerOf(mpp) : null),
    resume: async () => mpp?.resume(),
    close: async () => mpp?.close(),
  };
}

/** `/mpp/`: the services that MPP can buy, open to every rail that can pay there. */
export function openMppDoor(
  house: House,
  needs: { mpp: MppRail | null; sales: Sales; x402: Rail; credits: Rail },
): Part {
  const { mpp, sales, x402, credits } = needs;
  const name = 'mpp-door';
  if (mpp === null) return { name };
  const door = mppDoor(mpp, [x402], house.baseUrl);
  const paidCall = sales.open({ rails: [mpp.rail, x402, credits], door });
  return servicesDoor(house, { name, prefixes: ['/mpp'], isSold: isSoldByMpp, paidCall });
}

const isSoldByMpp = ({ mpp }: Service) => mpp;

function offerOf(mpp: MppRail | null) {
  const [first, ...rest] = (mpp?.methods ?? []).map((each) => ({
    ...each,
    canRefund: mpp?.rail.chains?.canRefund(`eip155:${each.chainId}`) === true,
  }));
  if (first === undefined) return null;
  const methods: [typeof first, ...(typeof first)[]] = [first, ...rest];
  return { methods };
}
