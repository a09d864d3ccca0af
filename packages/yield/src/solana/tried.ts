/**
 * Runs transactions on the node before they are handed out, and compares what they would do with the model. A program that does more than
 * the model knows, such as paying rewards into the reserve, is told from it by its figures.
 */

import { unavailable } from '@farebox/core/http/problem';
import type { FastifyBaseLogger } from 'fastify';
import { USDC_RESERVE } from './addresses.ts';
import { wouldFail } from './bundle.ts';
import { fromNode } from './from-node.ts';
import { accrue } from './model/interest.ts';
import { decodeReserve, LayoutError, type Reserve } from './model/reserve.ts';
import type { Account, Node, Simulation } from './node.ts';
import { type Portal, type ReserveNow, readTokenAccount } from './portal.ts';

/** Between a look at the reserve and the simulation others may change it: so often it is looked at again before a difference counts. */
const ATTEMPTS = 3;
/** The tolerance between simulation and model: units that roundings leave over, and one part of so many, since a changed rate counts for the slots between. */
const LEFT_OVER = 2n;
const PARTS = 1_000_000_000n;
const DIFFERS_RETRY_MS = 600_000;

/** The effect of a transaction on a token account, by its simulation and by the model. */
export interface Tried {
  slot: bigint;
  unitsConsumed: number;
  /** The increase of the token account's balance. */
  change: bigint;
  modelled: bigint;
  agrees: boolean;
}

export interface TrialParts {
  node: Pick<Node, 'simulate'>;
  portal: Pick<Portal, 'look'>;
  logger: Pick<FastifyBaseLogger, 'warn'>;
}

export interface Trial {
  /** base64 */
  transaction: string;
  /** The token account whose change is compared. */
  account: string;
  now: ReserveNow;
  /** The token account, as it was read with the reserve. */
  before: Account | null;
  /** The increase that the model expects. @param reserve with interest up to the transaction's slot */
  model(reserve: Reserve): bigint;
}

/** @throws Problem 409 when the transaction would fail, 503 while the node is silent */
export async function tryOut({ node, portal, logger }: TrialParts, trial: Trial): Promise<Tried> {
  let { now, before } = trial;
  for (let attempt = 1; ; attempt += 1) {
    const simulation = await fromNode(node.simulate(trial.transaction, [trial.account, USDC_RESERVE]));
    if (simulation.err !== null) throw wouldFail(simulation);
    const slot = slotOf(simulation, now);
    const change = heldIn(simulation.accounts[0] ?? null) - heldIn(before);
    const modelled = trial.model(accrue(now.reserve, slot, now.market.referralFeeBps));
    const agrees = isNear(change, modelled);
    if (agrees || attempt === ATTEMPTS) {
      if (!agrees)
        logger.warn(
          { slot: String(slot), simulated: String(change), modelled: String(modelled) },
          'the lending program does something else than the model of the portal: no deposits are built',
        );
      return { slot, unitsConsumed: simulation.unitsConsumed, change, modelled, agrees };
    }
    const { accounts, ...later } = await portal.look([trial.account]);
    now = later;
    before = accounts[0] ?? null;
  }
}

/** The 503 of a deposit that would do something else than the model says. */
export function modelDiffers({ slot, change, modelled }: Tried) {
  return unavailable(
    'MODEL_DIFFERS',
    'The lending program would give another amount than this portal’s model of it. No deposit is built until both agree; withdrawals are.',
    DIFFERS_RETRY_MS,
    {
      success: false,
      simulation: { slot: String(slot), collateral_raw: String(change) },
      model: { collateral_raw: String(modelled) },
    },
  );
}

function isNear(simulated: bigint, modelled: bigint): boolean {
  const apart = simulated > modelled ? simulated - modelled : modelled - simulated;
  return apart <= LEFT_OVER + modelled / PARTS;
}

function heldIn(account: Account | null): bigint {
  return readTokenAccount(account)?.amount ?? 0n;
}

/** The slot that the program reckoned interest up to, as it leaves it in the reserve; where that is not shown, the node's. */
function slotOf({ accounts, slot }: Simulation, { reserve }: ReserveNow): bigint {
  const told = reckonedSlot(accounts[1] ?? null) ?? BigInt(slot);
  return told > reserve.lastUpdateSlot ? told : reserve.lastUpdateSlot;
}

function reckonedSlot(account: Account | null): bigint | null {
  try {
    return account === null ? null : decodeReserve(account).lastUpdateSlot;
  } catch (error) {
    if (error instanceof LayoutError) return null;
    throw error;
  }
}
