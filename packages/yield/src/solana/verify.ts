/** Whether a transaction is a wallet's deposit, by what the chain says; asked by `confirm`, and by the keeper for what was left open. */
import type { Book } from './book.ts';
import type { Moves, WalletMove } from './moves.ts';
import { isOutage, type Landed, type Node, type Status } from './node.ts';
import type { Portal } from './portal.ts';

export type Verdict =
  | { status: 'confirmed'; deposit: WalletMove }
  | { status: 'refused'; httpStatus: 400 | 403; code: string; message: string; onChainError: unknown }
  /** `unseen`: the node knows no such transaction, or does not show it. `silent`: it does not say. */
  | { status: 'unseen' | 'silent' };

export type Verify = ReturnType<typeof createVerifier>;

export function createVerifier(parts: { node: Node; portal: Portal; moves: Moves; book: Book }) {
  const { node, portal, moves, book } = parts;

  /** @returns null: it is not in a block, as far as the node knows */
  async function look(signature: string): Promise<Landed | Status | 'unreadable' | null> {
    const landed = await node.transaction(signature, 'confirmed');
    if (landed !== null) return landed;
    const { statuses } = await node.statuses([signature]);
    return statuses[0] ?? null;
  }

  /**
   * Asks the chain, and writes down what it says.
   *
   * @throws when the database does not answer
   */
  return async (signature: string, wallet: string): Promise<Verdict> => {
    const known = await moves.find(signature);
    if (known !== null) return verdictOf(known, wallet);
    let landed: Awaited<ReturnType<typeof look>>;
    try {
      if ((await portal.refusal()) !== null) return { status: 'silent' };
      landed = await look(signature);
    } catch (error) {
      if (isOutage(error)) return { status: 'silent' };
      throw error;
    }
    if (landed === null) return { status: 'unseen' };
    if (landed === 'unreadable')
      return refused(
        400,
        'NOT_A_DEPOSIT',
        'It is of a version of transactions that deposits here do not have.',
      );
    if (landed.err !== null)
      return {
        ...refused(400, 'TRANSACTION_FAILED', 'The transaction failed on the chain: nothing was deposited.'),
        onChainError: landed.err,
      };
    // It landed, and nobody shows what it did: another node was asked for it, or its history ends above it.
    if (!('signers' in landed)) return { status: 'unseen' };
    if (!landed.signers.includes(wallet))
      return refused(403, 'NOT_A_SIGNER', 'The wallet is not a signer of that transaction.');
    if (landed.slot < portal.sinceSlot)
      return refused(
        400,
        'BEFORE_PORTAL',
        `It is from before this portal began, in slot ${portal.sinceSlot}.`,
      );
    const { deposit, why, withdrawal, fee } = await book.enter(landed, false);
    if (deposit !== null) return verdictOf(deposit, wallet);
    if (withdrawal !== null) return verdictOf(withdrawal, wallet);
    if (fee !== null)
      return refused(
        400,
        'FEE_TRANSACTION',
        'This is the fee transaction of the bundle. Confirm the last one, which deposits.',
      );
    return refused(400, why?.code ?? 'NOT_A_DEPOSIT', why?.message ?? 'It deposits nothing.');
  };
}

function verdictOf(move: WalletMove, wallet: string): Verdict {
  if (move.wallet !== wallet)
    return refused(403, 'NOT_A_SIGNER', 'The transaction moves the funds of another wallet.');
  return move.kind === 'deposit'
    ? { status: 'confirmed', deposit: move }
    : refused(400, 'NOT_A_DEPOSIT', 'It is a withdrawal.');
}

function refused(
  httpStatus: 400 | 403,
  code: string,
  message: string,
): Extract<Verdict, { status: 'refused' }> {
  return { status: 'refused', httpStatus, code, message, onChainError: null };
}
