/** Reads from the vault's events who got shares, for how much, and who gave them back. */
import { type Address, parseEventLogs, type RpcLog, zeroAddress } from 'viem';
import { VAULT_ABI } from '../contracts/abi.ts';
import { PROTOCOLS, type ProtocolName } from '../contracts/protocols.ts';

export type MoveKind = 'deposit' | 'withdraw' | 'in_kind' | 'transfer' | 'fee';

/** Shares that came to be, changed hands or went. */
export interface Move {
  blockNumber: bigint;
  logIndex: number;
  kind: MoveKind;
  /** In lower case, as addresses are looked up; null: the shares were made, or burned. */
  from: string | null;
  to: string | null;
  shares: bigint;
  /** The USDC units that were paid or received for them; null: the event does not say. */
  assets: bigint | null;
  /** USDC units for so many shares, without the fee; null: the event has no price. */
  price: { assets: bigint; shares: bigint } | null;
}

/**
 * Reads the moves in the logs of some blocks.
 *
 * @param logs of the vault alone, all of each transaction, in the chain's order
 */
export function movesIn(logs: readonly RpcLog[]): Move[] {
  const events = parseEventLogs({ abi: VAULT_ABI, logs: logs as RpcLog[] });
  const byTransaction = Map.groupBy(events, ({ transactionHash }) => transactionHash);
  return [...byTransaction.values()].flatMap(ofTransaction);
}

/** A move of the keeper among the protocols. */
export interface KeeperMove {
  blockNumber: bigint;
  logIndex: number;
  transactionHash: string;
  from: ProtocolName;
  to: ProtocolName;
  /** In USDC units: what left the one, and what came to count in the other. */
  assets: bigint;
  received: bigint;
}

/** Reads the keeper's moves in the logs of some blocks. @param logs of the vault alone */
export function keeperMovesIn(logs: readonly RpcLog[]): KeeperMove[] {
  return parseEventLogs({ abi: VAULT_ABI, logs: logs as RpcLog[], eventName: 'Moved' }).flatMap((event) => {
    const { from, to, assets, received } = event.args;
    const [fromName, toName] = [PROTOCOLS[from], PROTOCOLS[to]];
    const { blockNumber, logIndex, transactionHash } = event;
    if (fromName === undefined || toName === undefined || blockNumber === null) return [];
    return [
      {
        blockNumber,
        logIndex: logIndex ?? 0,
        transactionHash: transactionHash ?? '',
        from: fromName,
        to: toName,
        assets,
        received,
      },
    ];
  });
}

/** The units of a deposit with a fee that buy no shares: `DUST` of `contracts/src/FareboxVault.sol`. */
const DUST = 2n;

type Event = ReturnType<typeof parseEventLogs<typeof VAULT_ABI>>[number];

function ofTransaction(events: readonly Event[]): Move[] {
  const moves: (Move & { matched: boolean })[] = [];
  let feeShares = 0n;
  const unmatched = (wanted: (move: Move) => boolean) => (move: (typeof moves)[number]) =>
    !move.matched && wanted(move);
  for (const event of events) {
    switch (event.eventName) {
      case 'Transfer': {
        const { from, to, value } = event.args;
        if (value > 0n && from !== to) moves.push({ ...moveOf(event, from, to, value), matched: false });
        break;
      }
      case 'EntryFeePaid':
      case 'PerformanceFeePaid': {
        // The fee's shares were made last.
        const { shares } = event.args;
        const its = moves.findLast(unmatched((move) => move.from === null && move.shares === shares));
        if (its !== undefined) Object.assign(its, { kind: 'fee', matched: true });
        if (event.eventName === 'EntryFeePaid') feeShares = shares;
        break;
      }
      case 'Deposit': {
        const { owner, assets, shares } = event.args;
        const its = moves.find(
          unmatched((move) => move.from === null && move.to === keyOf(owner) && move.shares === shares),
        );
        const price = { assets: feeShares > 0n ? assets - DUST : assets, shares: shares + feeShares };
        if (its !== undefined) Object.assign(its, { kind: 'deposit', assets, price, matched: true });
        feeShares = 0n;
        break;
      }
      case 'Withdraw': {
        const { owner, assets, shares } = event.args;
        const its = moves.find(
          unmatched((move) => move.to === null && move.from === keyOf(owner) && move.shares === shares),
        );
        if (its !== undefined)
          Object.assign(its, { kind: 'withdraw', assets, price: { assets, shares }, matched: true });
        break;
      }
    }
  }
  return moves.map(({ matched: _, ...move }) => move);
}

function moveOf(
  { blockNumber, logIndex }: { blockNumber: bigint | null; logIndex: number | null },
  from: Address,
  to: Address,
  shares: bigint,
): Move {
  const kind = from === zeroAddress ? 'fee' : to === zeroAddress ? 'in_kind' : 'transfer';
  return {
    blockNumber: blockNumber ?? 0n,
    logIndex: logIndex ?? 0,
    kind,
    shares,
    assets: null,
    price: null,
    from: walletOf(from),
    to: walletOf(to),
  };
}

/** Writes an address as it is looked up. */
export function keyOf(address: Address): string {
  return address.toLowerCase();
}

function walletOf(address: Address): string | null {
  return address === zeroAddress ? null : keyOf(address);
}

/** Names of the events that moves are read from. */
export const MOVE_EVENTS = [
  'Transfer',
  'EntryFeePaid',
  'PerformanceFeePaid',
  'Deposit',
  'Withdraw',
  'Moved',
] as const;
