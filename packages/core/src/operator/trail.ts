/** The trail of operators: who signed in, asked for something or was shown somebody's data, and from where. It only grows. */
import type { Database, Transaction } from '../db/connection.ts';
import type { Role } from './roles.ts';

export const TRAIL_A_PAGE = 50;
/** Accounts and calls that one row names. What an answer shows is bounded by its page, which is shorter. */
const MOST_NAMED = 200;

type TrailKind =
  | 'sign_in'
  | 'sign_out'
  | 'session_ended'
  | 'role_set'
  | 'tokens_off'
  | 'tokens_on'
  | 'asked'
  | 'shown'
  | 'export';

/** An operator, as one request of theirs is let in. */
export interface Operator {
  /** Stands in every act and in the ledger's notes, and is the same for one person however often they sign in. */
  actor: string;
  role: Role;
  /** Null: a token opened the page, of which nobody knows who holds it. */
  person: { id: bigint; issuer: string; subject: string; email: string | null; sessionId: string } | null;
}

interface TrailRow {
  number: bigint;
  at: Date;
  kind: string;
  actor: string;
  issuer: string | null;
  subject: string | null;
  email: string | null;
  role: string | null;
  address: string | null;
  about: string;
  digest: Buffer;
}

export type Trail = ReturnType<typeof createTrail>;

export function createTrail(sql: Database, nowMs: () => number) {
  return {
    /**
     * Writes one row. It takes its turn among all rows, so within a transaction it comes last.
     *
     * @param address the caller's; null: a command on the server's machine
     * @param about small and without customers' data: the row can never be removed
     */
    async note(
      kind: TrailKind,
      { actor, role, person }: Omit<Operator, 'role'> & { role: Role | null },
      { address, about, on = sql }: { address: string | null; about: object; on?: Database | Transaction },
    ): Promise<void> {
      await on`
        insert into operator_trail (at, kind, actor, issuer, subject, email, role, address, about)
        values (${new Date(nowMs()).toISOString()}, ${kind}, ${actor}, ${person?.issuer ?? null},
                ${person?.subject ?? null}, ${person?.email ?? null}, ${role}, ${address}, ${JSON.stringify(about)})`;
    },

    /** The newest first, 50 at a time. @param after the number of the last one seen */
    async list(after: bigint | null): Promise<TrailRow[]> {
      const rows = await sql<TrailRow[]>`
        select * from operator_trail where ${after === null ? sql`true` : sql`number < ${String(after)}`}
        order by number desc limit ${TRAIL_A_PAGE}`;
      return [...rows];
    },
  };
}

/** The numbers of accounts and the ids of calls that an answer names, each once, 200 of each at most. */
export function namedIn(answer: unknown): { accounts: string[]; calls: string[] } {
  const accounts = new Set<string>();
  const calls = new Set<string>();
  const waiting: unknown[] = [answer];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (Array.isArray(value)) waiting.push(...value);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) continue;
    for (const [name, each] of Object.entries(value)) {
      if (name === 'accountId' && typeof each === 'string') accounts.add(each);
      else if (name === 'callId' && typeof each === 'string') calls.add(each);
      else waiting.push(each);
    }
  }
  return { accounts: [...accounts].slice(0, MOST_NAMED), calls: [...calls].slice(0, MOST_NAMED) };
}

/** A row as the page gets it. */
export function trailAsJson(row: TrailRow): Record<string, unknown> {
  const { number, at, about, digest, ...rest } = row;
  return {
    number: String(number),
    at: at.toISOString(),
    ...rest,
    about: JSON.parse(about),
    sha256: digest.toString('hex'),
  };
}
