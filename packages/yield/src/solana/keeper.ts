/**
 * The portal's work without a request: claims that were left open are settled from the chain, deposits are found by their fees, and
 * fees that found no deposit are listed as due back. Every step may be made by several replicas at once and end anywhere: what is
 * taken is taken for a while, and what is written is written once.
 */
import type { Held } from '@farebox/core/db/leased-queue';
import type { FastifyBaseLogger } from 'fastify';
import type { Book } from './book.ts';
import type { Claim, Claims } from './claims.ts';
import { triesDeposit } from './effects.ts';
import type { Fee, Fees } from './fees.ts';
import { ownAccountsOf } from './instructions.ts';
import type { Intents } from './intents.ts';
import type { Moves } from './moves.ts';
import { isOutage, type Node, PAGE } from './node.ts';
import type { Portal } from './portal.ts';
import type { Verify } from './verify.ts';
import type { Walk } from './walk.ts';

/** The claims that one request asks about. */
const CLAIMS = 200;
const UNREAD = 25;
const OPEN_MOVES = 200;
const MAX_SILENT = 3;
/** The most that a round does, so that no kind of work waits for another one that never ends. */
const ROUND = { claimBatches: 5, unreadBatches: 20, fees: 100, calls: 300 };
/** A claim that the chain knows nothing of is given up after this, its blockhash being long over in the chain's own time too. */
const GIVEN_UP_MS = { age: 600_000, chain: 180_000 };
/** How long to wait for the next look, at the least and the most. */
const AGAIN_MS = { least: 10_000, most: 300_000 };
/** So many slots after its fee no deposit is waited for: ten minutes, of which a blockhash lives one and a half. */
const DEPOSIT_SLOTS = 1_500n;
/** A wallet's transactions that are listed, and that are fetched, at one look for a deposit. */
const LOOK = { pages: 3, fetched: 100 };
/** How often the deposit of a fee that is due back is looked for. */
const LATE_LOOK_MS = 3_600_000;
/** A deposit that was confirmed, and that no node knows so many slots later, is not on the chain. */
const LOST_SLOTS = 600n;

export interface KeeperParts {
  node: Node;
  portal: Portal;
  verify: Verify;
  book: Book;
  moves: Moves;
  claims: Claims;
  fees: Fees;
  intents: Intents;
  walk: Walk;
  logger: Pick<FastifyBaseLogger, 'info' | 'warn'>;
  nowMs(): number;
}

export type Keeper = ReturnType<typeof createKeeper>;

export function createKeeper(parts: KeeperParts) {
  return {
    /**
     * Does what wallets wait for: settles claims, and makes final what was confirmed. It waits for nothing that others may pile up.
     *
     * @throws when the database does not answer
     */
    async settle(stopping?: AbortSignal): Promise<void> {
      await whileAnswered(parts, async () => {
        await finish(parts);
        await inBatches(ROUND.claimBatches, CLAIMS, () => settleClaims(parts, stopping), stopping);
      });
      await parts.claims.forget();
    },

    /**
     * One round of what is found on the chain. A node that is silent ends a step: what was taken falls due again.
     *
     * @throws when the database does not answer
     */
    async round(stopping?: AbortSignal): Promise<void> {
      await whileAnswered(parts, () => findDeposits(parts, stopping));
      await whileAnswered(parts, async () => {
        await parts.walk.list(stopping);
        await inBatches(ROUND.unreadBatches, UNREAD, () => readListed(parts, stopping), stopping);
      });
      await parts.intents.forget();
    },
  };
}

/** Does what needs the chain, as far as the chain answers and is what the portal was made for. */
async function whileAnswered({ portal }: KeeperParts, work: () => Promise<void>): Promise<void> {
  try {
    if ((await portal.refusal()) === null) await work();
  } catch (error) {
    if (!isOutage(error)) throw error;
  }
}

/** Batch after batch until one is not full, and no more than so many: what was looked at may be due again by then. */
async function inBatches(
  most: number,
  batchSize: number,
  batch: () => Promise<number>,
  stopping?: AbortSignal,
): Promise<void> {
  for (let done = 0; done < most && stopping?.aborted !== true; done += 1)
    if ((await batch()) < batchSize) return;
}

/** Claims whose transactions have landed are verified; the others wait, or have waited long enough. */
async function settleClaims(parts: KeeperParts, stopping?: AbortSignal): Promise<number> {
  const { node, claims, verify } = parts;
  const due = await claims.takeDue(CLAIMS);
  if (due.length === 0) return 0;
  const { statuses, slot } = await node.statuses(due.map(({ signature }) => signature));
  let silent = 0;
  for (const [index, claim] of due.entries()) {
    if (stopping?.aborted) break;
    const status = statuses[index];
    const verdict = status ? await verify(claim.signature, claim.wallet) : { status: 'unseen' as const };
    if (verdict.status === 'confirmed') await claims.end(claim, 'confirmed', null);
    else if (verdict.status === 'refused') await claims.end(claim, 'refused', verdict.code);
    else await waitOrGiveUp(parts, claim, verdict.status === 'unseen' ? slot : null);
    // Whoever is silent now is not asked about the rest, unless it was this one alone.
    if (verdict.status === 'silent') silent += 1;
    if (silent >= MAX_SILENT) return 0;
  }
  return due.length;
}

/** @param unseenAt the slot that the node knew nothing of it at; null: it does not say */
async function waitOrGiveUp(parts: KeeperParts, claim: Held<Claim>, unseenAt: number | null): Promise<void> {
  const { node, claims, logger, nowMs } = parts;
  const ageMs = nowMs() - claim.claimed_at.getTime();
  // A node that has stood still for as long knows nothing of what landed since.
  if (ageMs >= GIVEN_UP_MS.age && unseenAt !== null) {
    const seenMs = await node.blockTimeMs(unseenAt);
    if (seenMs !== null && seenMs >= claim.claimed_at.getTime() + GIVEN_UP_MS.chain) {
      if (await claims.giveUp(claim, 'NOT_SEEN'))
        logger.info(
          { signature: claim.signature, why: 'NOT_SEEN' },
          'a deposit that was claimed is given up',
        );
      return;
    }
  }
  await claims.lookAgain(claim, Math.min(Math.max(ageMs / 4, AGAIN_MS.least), AGAIN_MS.most));
}

/** Moves that were confirmed become final, or are not on the chain any more. */
async function finish({ node, moves, logger }: KeeperParts): Promise<void> {
  const open = await moves.open(OPEN_MOVES);
  if (open.length === 0) return;
  const { statuses, slot: asked } = await node.statuses(open.map(({ signature }) => signature));
  const final = open.filter((_move, index) => statuses[index]?.final);
  await moves.finish(final.map(({ signature }) => signature));
  const unknown = open.filter((_move, index) => statuses[index] === null);
  if (unknown.length === 0) return;
  const [{ slot: finalized }, first] = await Promise.all([node.height('finalized'), node.firstBlock()]);
  // Of several nodes behind one address the statuses may be of one that is behind, or that begins above it.
  const slot = Math.min(finalized, asked);
  for (const { signature, slot: landedAt } of unknown) {
    if (BigInt(slot) < landedAt + LOST_SLOTS || first === null || landedAt < BigInt(first)) continue;
    if ((await node.transaction(signature, 'confirmed')) !== null) continue;
    if (await moves.takeBack(signature))
      logger.warn(
        { signature },
        'a deposit that was confirmed is not on the chain any more: it is taken back',
      );
  }
}

/** Fetches what the walk listed, and writes it down. */
async function readListed(parts: KeeperParts, stopping?: AbortSignal): Promise<number> {
  const { node, walk, book, logger } = parts;
  const unread = await walk.takeUnread(UNREAD);
  for (const each of unread) {
    if (stopping?.aborted) break;
    const landed = await node.transaction(each.signature, 'finalized');
    if (landed === null) {
      if (!(await walk.again(each)))
        logger.warn(
          { signature: each.signature },
          'a payment to the treasury cannot be fetched: it is left out',
        );
      continue;
    }
    // The fee may be in another's hands, or not listed yet: the refund would be for nothing, and the fee due back for ever.
    if (landed !== 'unreadable' && (await book.awaitsFee(landed)) && (await walk.again(each))) continue;
    if (landed !== 'unreadable') await book.enter(landed, true);
    await walk.isRead(each);
  }
  return unread.length;
}

/** Deposits are looked for whose fees were paid; those that did not come make their fees due back. */
async function findDeposits(parts: KeeperParts, stopping?: AbortSignal): Promise<void> {
  const { node, fees } = parts;
  const budget = { calls: ROUND.calls };
  let slot: bigint | null = null;
  for (let count = 0; count < ROUND.fees && budget.calls > 0 && stopping?.aborted !== true; count += 1) {
    const fee = await fees.takeDue();
    if (fee === null) return;
    if (await fees.matchNow(fee.wallet, fee.signature)) continue;
    // Before the look: what is not listed then was in no block up to it.
    slot ??= BigInt((await node.height('finalized')).slot);
    const from = fee.looked_before === null ? slot : (fee.looked_from ?? 0n);
    const looked = await lookForDeposit(parts, fee, budget);
    if (await fees.matchNow(fee.wallet, fee.signature)) continue;
    const soonMs = AGAIN_MS.least * 3;
    if (!looked.isWhole) await fees.lookAgain(fee, { before: looked.before, from, afterMs: soonMs });
    else if (fee.state === 'waiting' && from >= fee.slot + DEPOSIT_SLOTS)
      await fees.giveUp(fee, looked.failed ? 'DEPOSIT_FAILED' : 'NO_DEPOSIT', LATE_LOOK_MS);
    else {
      const afterMs = fee.state === 'waiting' ? soonMs : LATE_LOOK_MS;
      await fees.lookAgain(fee, { before: null, from: null, afterMs });
    }
  }
}

/**
 * Looks through what a wallet's collateral account did since a fee was paid, and writes down the deposits.
 *
 * @param budget what the round may still ask the node; less afterwards
 * @returns whether all was seen, and else where to go on; and whether a deposit failed
 */
async function lookForDeposit(
  { node, book, moves }: KeeperParts,
  fee: Fee,
  budget: { calls: number },
): Promise<{ isWhole: boolean; before: string | null; failed: boolean }> {
  const { collateral } = ownAccountsOf(fee.wallet as Parameters<typeof ownAccountsOf>[0]);
  let before = fee.looked_before;
  let failed = false;
  let fetched = 0;
  for (let pages = 0; pages < LOOK.pages; pages += 1) {
    budget.calls -= 1;
    const listed = await node.signaturesOf(collateral, { before, until: null });
    const since = listed.filter(({ slot }) => BigInt(slot) >= fee.slot);
    for (const { signature, err } of since) {
      if (fetched >= LOOK.fetched || budget.calls <= 0) return { isWhole: false, before, failed };
      const isKnown = err === null && (await moves.find(signature)) !== null;
      if (!isKnown) {
        fetched += 1;
        budget.calls -= 1;
        const landed = await node.transaction(signature, 'finalized');
        if (landed === null) return { isWhole: false, before, failed };
        if (landed !== 'unreadable') {
          if (landed.err === null) await book.enter(landed, true);
          else if (triesDeposit(landed) && landed.signers.includes(fee.wallet)) failed = true;
        }
      }
      before = signature;
    }
    if (listed.length < PAGE || since.length < listed.length) return { isWhole: true, before: null, failed };
  }
  return { isWhole: false, before, failed };
}
