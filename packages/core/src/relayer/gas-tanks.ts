/**
 * Whether keys of ours can pay for transactions, whatever the chain: what each holds, what it spends a day, and how long
 * that lasts. What is offered follows from what was seen last, so that no offer waits for a node.
 */
import { formatUnits } from 'viem';
import type { Database } from '../db/connection.ts';
import { DAYS_LOOKED_BACK, spentPerDay } from './gas-spent.ts';

/** The purpose of a key's transactions. */
export type Duty = 'settle' | 'refund' | 'register' | 'move';

/** A chain's fee currency. */
export interface GasToken {
  symbol: string;
  /** How many places its smallest unit is behind the point. */
  decimals: number;
}

/** A chain, as far as keys of ours pay for transactions on it. Amounts are in the smallest unit of its `GasToken`. */
export interface GasSource {
  /** A key's balance. @throws when the node does not answer */
  balanceOf(address: string): Promise<bigint>;
  /** The cost of one transaction now. @throws when the node does not answer */
  cost(): Promise<bigint>;
  /** The time for which each key's oldest transaction has been waiting for its block, in ms; those without one are left out. */
  waitingMs?(addresses: readonly string[]): Promise<ReadonlyMap<string, number>>;
}

/** One key with one duty on one network. */
export interface GasStanding {
  /** CAIP-2. */
  network: string;
  duty: Duty;
  address: string;
  token: GasToken;
  /** The balance that was last read; null: none was read yet. */
  balance: bigint | null;
  seenAtMs: number | null;
  /** With less than this it takes nothing more on; null: not known yet. */
  least: bigint | null;
  /** Its fees a day; null: it has no history. */
  perDay: bigint | null;
  /** How long the balance lasts at that rate; null: not known, and why. */
  daysLeft: number | null;
  daysUnknown: string | null;
  isAble: boolean;
  /** Why it is not, and since when. */
  reason: string | null;
  unableSinceMs: number | null;
}

/** The keys of one duty on one network. */
export interface GasTank {
  /** Whether any of its keys can pay. Before the chain has said what they hold they are believed to. */
  readonly isAble: boolean;
  /** The last known cost of one transaction; 0: not known yet. */
  readonly cost: bigint;
  canPay(address: string): boolean;
  /** Tells what a key holds, by somebody who has just seen it. */
  saw(address: string, balance: bigint): void;
}

export interface GasTanks {
  open(tank: {
    network: string;
    duty: Duty;
    token: GasToken;
    addresses: readonly string[];
    source: GasSource;
    /** The balance that a key needs for more work, given the cost of one transaction. */
    least(cost: bigint): bigint;
  }): GasTank;
  /** Reads the balance of every key. A key whose node is silent keeps its last value and delays no other. */
  look(): Promise<void>;
  standings(): readonly GasStanding[];
  /** Grows whenever what can be offered, and at what price, may be something else. */
  readonly revision: number;
}

/** A transaction that waits for longer holds up all behind it: fees were raised by then, and did not help. */
const STUCK_AFTER_MS = 120_000;

interface Key {
  address: string;
  balance: bigint | null;
  seenAtMs: number | null;
  waitingMs: number;
  perDay: bigint | null;
  reason: string | null;
  unableSinceMs: number | null;
}

const UNSEEN: Omit<Key, 'address'> = {
  balance: null,
  seenAtMs: null,
  waitingMs: 0,
  perDay: null,
  reason: null,
  unableSinceMs: null,
};

/** Why it cannot be said for how many days a balance lasts; null: it can. */
function whyNoDays({ balance, perDay }: Key): string | null {
  if (balance === null) return 'the chain has not said what it holds';
  if (perDay === null)
    return `none of its transactions of the last ${DAYS_LOOKED_BACK} days has a known cost`;
  return perDay === 0n ? 'its transactions cost nothing' : null;
}

/** @param parts.report told once when a key cannot pay any more, and once when it can again */
export function createGasTanks(parts: {
  sql: Database;
  nowMs(): number;
  report(standing: GasStanding, tank: { isAble: boolean }): void;
}): GasTanks {
  const { sql, nowMs } = parts;
  const all: { look(): Promise<void>; standings(): GasStanding[] }[] = [];
  let revision = 0;

  function open({ network, duty, token, addresses, source, least }: Parameters<GasTanks['open']>[0]) {
    let cost = 0n;
    const keys = addresses.map((address): Key => ({ address, ...UNSEEN }));
    const written = (amount: bigint) => `${formatUnits(amount, token.decimals)} ${token.symbol}`;

    /** Why a key cannot pay; null: it can. */
    function whyNot({ balance, waitingMs, reason }: Key): string | null {
      const needed = least(cost);
      // Who ran dry needs a quarter more to go on: else it would come and go with every change of the fees.
      const enough = reason === null ? needed : (needed * 5n) / 4n;
      // Nothing is too little whatever it costs, which may not be known yet.
      if (balance === 0n || (balance !== null && balance < enough))
        return `holds ${written(balance)}, and needs ${enough === 0n ? 'some' : written(enough)}`;
      if (waitingMs >= STUCK_AFTER_MS)
        return `its oldest transaction has been waiting for ${Math.floor(waitingMs / 1_000)} s`;
      return null;
    }

    function judge(key: Key): void {
      const reason = whyNot(key);
      const changed = (reason === null) !== (key.reason === null);
      key.reason = reason;
      if (!changed) return;
      key.unableSinceMs = reason === null ? null : nowMs();
      revision += 1;
      parts.report(standingOf(key), tank);
    }

    function standingOf(key: Key): GasStanding {
      const { address, balance, seenAtMs, perDay, reason, unableSinceMs } = key;
      return {
        network,
        duty,
        address,
        token,
        balance,
        seenAtMs,
        perDay,
        daysUnknown: whyNoDays(key),
        reason,
        unableSinceMs,
        least: cost === 0n ? null : least(cost),
        daysLeft:
          balance === null || perDay === null || perDay === 0n ? null : Number((balance * 10n) / perDay) / 10,
        isAble: reason === null,
      };
    }

    const tank: GasTank = {
      get isAble() {
        return keys.some(({ reason }) => reason === null);
      },
      get cost() {
        return cost;
      },
      canPay: (address) => keys.some((key) => key.address === address && key.reason === null),
      saw(address, balance) {
        const key = keys.find((each) => each.address === address);
        if (key === undefined) return;
        Object.assign(key, { balance, seenAtMs: nowMs() });
        judge(key);
      },
    };

    async function look(): Promise<void> {
      const none = () => null;
      const [costs, waiting, perDay] = await Promise.all([
        source.cost().catch(none),
        source.waitingMs?.(addresses).catch(none) ?? new Map<string, number>(),
        spentPerDay(sql, { network, addresses, nowMs: nowMs() }).catch(none),
        ...keys.map(async (key) => {
          const balance = await source.balanceOf(key.address).catch(none);
          if (balance !== null) Object.assign(key, { balance, seenAtMs: nowMs() });
        }),
      ]);
      // Which prices are worth their gas may be others now.
      if (costs !== null && costs !== cost) revision += 1;
      cost = costs ?? cost;
      for (const key of keys) {
        if (waiting !== null) key.waitingMs = waiting.get(key.address) ?? 0;
        if (perDay !== null) key.perDay = perDay.get(key.address) ?? null;
        judge(key);
      }
    }

    all.push({ look, standings: () => keys.map(standingOf) });
    return tank;
  }

  return {
    open,
    look: async () => void (await Promise.all(all.map((tank) => tank.look()))),
    standings: () => all.flatMap((tank) => tank.standings()),
    get revision() {
      return revision;
    },
  };
}
