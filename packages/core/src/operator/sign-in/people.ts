/** The people who sign in as operators, their roles, and their sessions. */
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import type { Database, Transaction } from '../../db/connection.ts';
import { Problem } from '../../http/problem.ts';
import { ROLES, type Role } from '../roles.ts';
import type { Operator, Trail } from '../trail.ts';
import type { SignedIn } from './provider.ts';
import { type RoleClaims, type RoleRule, roleOf } from './role-rules.ts';

/** A session is noted as used this often, so that a page that asks every second writes a row a minute. */
const SEEN_EVERY_MS = 60_000;
const MOST_SESSIONS_EACH = 20;
const MOST_PEOPLE = 1_000;
const LISTED = 200;
const DAY_MS = 86_400_000;
const MAX_AGENT_CHARACTERS = 200;

export interface SessionBounds {
  /** It ends when nothing was asked by it for so long. */
  idleMs: number;
  /** It ends so long after the sign-in, whatever was asked. */
  longestMs: number;
  /** How long it is kept after its end. */
  retentionDays: number;
}

interface PersonRow {
  id: bigint;
  issuer: string;
  subject: string;
  actor: string;
  email: string | null;
  claims: RoleClaims;
  role_set: Role | 'none' | null;
  first_at: Date;
  last_at: Date;
}

interface PeopleParts {
  sql: Database;
  trail: Trail;
  /** The provider that people are of; those of another one have no role. Null: none is configured. */
  issuer: string | null;
  rules: readonly RoleRule[];
  bounds: SessionBounds;
  /** Whether a token opens the page as long as nobody turned tokens off. */
  hasTokens(): boolean;
  nowMs(): number;
}

export class People {
  readonly #parts: PeopleParts;

  constructor(parts: PeopleParts) {
    this.#parts = parts;
  }

  /** Whether tokens are off. They never are while nobody else could come in. */
  async tokensAreOff(): Promise<boolean> {
    const { sql } = this.#parts;
    const [access] = await sql<{ off: boolean }[]>`
      select tokens_off_at is not null as off from operator_access`;
    return access?.off === true && (await this.#admins(sql)).length > 0;
  }

  /** Whether an actor is a person of the provider. */
  async isPerson(actor: string): Promise<boolean> {
    const { sql } = this.#parts;
    return (await sql`select 1 from operator_people where actor = ${actor}`).length > 0;
  }

  /** The role that a person has now; null: none. */
  #roleOf(row: Pick<PersonRow, 'issuer' | 'claims' | 'role_set'>): Role | null {
    const { issuer, rules } = this.#parts;
    if (row.issuer !== issuer || row.role_set === 'none') return null;
    return row.role_set ?? roleOf(row.claims, rules);
  }

  /** The ids of the people who are admins now. */
  async #admins(on: Database | Transaction): Promise<bigint[]> {
    const { issuer } = this.#parts;
    if (issuer === null) return [];
    const rows = await on<PersonRow[]>`select * from operator_people where issuer = ${issuer} order by id`;
    return rows.filter((row) => this.#roleOf(row) === 'admin').map(({ id }) => id);
  }

  /**
   * Begins a session for a person with a role. One sign-in begins one session.
   *
   * @param from.state of the sign-in
   * @returns the cookie's value, which is stored nowhere
   * @throws Problem 403 SIGN_IN_REFUSED, 409 SIGN_IN_USED
   */
  async begin(
    person: SignedIn,
    from: { state: string; address: string; agent: string | undefined },
  ): Promise<{ cookie: string; operator: Operator }> {
    const { sql, trail, bounds, nowMs } = this.#parts;
    const cookie = randomBytes(32).toString('base64url');
    const sessionId = randomUUID();
    const now = nowMs();
    const operator = await sql.begin(async (transaction) => {
      await transaction`select 1 from operator_access for update`;
      const row = await this.#metAgain(transaction, person);
      const role = row === null ? null : this.#roleOf(row);
      // What the provider tells now is kept all the same: it ends the person's other sessions.
      if (row === null || role === null) return null;
      const made = await transaction`
        insert into operator_sessions (id, digest, state_digest, person_id, address, agent, began_at, seen_at, ends_at)
        values (${sessionId}, ${digestOf(cookie)}, ${digestOf(from.state)}, ${String(row.id)}, ${from.address},
                ${from.agent?.slice(0, MAX_AGENT_CHARACTERS) ?? null}, ${iso(now)}, ${iso(now)}, ${iso(now + bounds.longestMs)})
        on conflict (state_digest) do nothing returning id`;
      if (made.length === 0)
        throw new Problem(409, 'SIGN_IN_USED', 'This sign-in has begun a session already. Sign in again.');
      await transaction`
        update operator_sessions set ended_at = ${iso(now)}, ended_why = 'too_many' where id in (
          select id from operator_sessions where person_id = ${String(row.id)} and ended_at is null
          order by began_at desc, id offset ${MOST_SESSIONS_EACH})`;
      await transaction`
        delete from operator_sessions where ends_at < ${iso(now - bounds.retentionDays * DAY_MS)}`;
      const signedIn = operatorOf(row, role, sessionId);
      const about = { session: sessionId };
      await trail.note('sign_in', signedIn, { address: from.address, about, on: transaction });
      return signedIn;
    });
    if (operator === null) throw refused(person);
    return { cookie, operator };
  }

  /** The person's row, made at their first sign-in with a role; null: they have none, and no row. */
  async #metAgain(transaction: Transaction, person: SignedIn): Promise<PersonRow | null> {
    const { rules, nowMs } = this.#parts;
    const { subject, email, claims } = person;
    const at = iso(nowMs());
    const [known] = await transaction<PersonRow[]>`
      update operator_people set email = ${email}, claims = ${JSON.stringify(claims)}::text::jsonb, last_at = ${at}
      where issuer = ${person.issuer} and subject = ${subject} returning *`;
    if (known !== undefined) return known;
    if (roleOf(claims, rules) === null) return null;
    const [count] = await transaction<{ people: bigint }[]>`select count(*) as people from operator_people`;
    if ((count?.people ?? 0n) >= MOST_PEOPLE)
      throw new Problem(409, 'TOO_MANY_OPERATORS', `There are ${MOST_PEOPLE} operators already.`);
    const name = email ?? `${subject} at ${new URL(person.issuer).host}`;
    // An address may have been another person's: two people never have one name.
    const [taken] = await transaction<{ next: bigint }[]>`
      select count(*) + 1 as next from operator_people where actor = ${name} or starts_with(actor, ${`${name} (`})`;
    const next = taken?.next ?? 1n;
    const [made] = await transaction<PersonRow[]>`
      insert into operator_people (issuer, subject, actor, email, claims, first_at, last_at)
      values (${person.issuer}, ${subject}, ${next === 1n ? name : `${name} (${next})`}, ${email},
              ${JSON.stringify(claims)}::text::jsonb, ${at}, ${at}) returning *`;
    return made ?? null;
  }

  /**
   * Recognizes a session by its cookie. A session whose person has no role any more ends here.
   *
   * @returns null: there is no such session, or it is over
   */
  async find(cookie: string, address: string): Promise<Operator | null> {
    const { sql, bounds, nowMs } = this.#parts;
    const now = nowMs();
    const [row] = await sql<(PersonRow & { session_id: string; seen_at: Date })[]>`
      select p.*, s.id as session_id, s.seen_at from operator_sessions s join operator_people p on p.id = s.person_id
      where s.digest = ${digestOf(cookie)} and s.ended_at is null and s.ends_at > ${iso(now)}
        and s.seen_at > ${iso(now - bounds.idleMs)}`;
    if (row === undefined) return null;
    const role = this.#roleOf(row);
    if (role === null) {
      const nobody = { ...operatorOf(row, 'read', row.session_id), role: null };
      await this.end(row.session_id, 'role_taken', nobody, address);
      return null;
    }
    if (row.seen_at.getTime() <= now - SEEN_EVERY_MS)
      await sql`update operator_sessions set seen_at = ${iso(now)} where id = ${row.session_id} and seen_at < ${iso(now)}`;
    return operatorOf(row, role, row.session_id);
  }

  /** Ends a session and writes that into the trail. @returns false: it was over */
  async end(
    sessionId: string,
    why: 'signed_out' | 'by_admin' | 'role_taken',
    by: Omit<Operator, 'role'> & { role: Role | null },
    address: string,
  ): Promise<boolean> {
    const { sql, trail, nowMs } = this.#parts;
    return sql.begin(async (transaction) => {
      const ended = await transaction`
        update operator_sessions set ended_at = ${iso(nowMs())}, ended_why = ${why}
        where id = ${sessionId} and ended_at is null returning id`;
      if (ended.length === 0) return false;
      const kind = why === 'signed_out' ? 'sign_out' : 'session_ended';
      await trail.note(kind, by, { address, about: { session: sessionId, why }, on: transaction });
      return true;
    });
  }

  /**
   * Sets a person's role, or takes back what was set. Who has none any more is out at once.
   *
   * @param wanted.role null: the role that follows from the claims again
   * @throws Problem 404 NO_SUCH_OPERATOR; 409 LAST_ADMIN where nobody could come in as an admin any more
   */
  async setRole(
    personId: bigint,
    wanted: { role: Role | 'none' | null; reason: string },
    by: Operator,
    address: string,
  ): Promise<void> {
    const { sql, trail, nowMs, hasTokens } = this.#parts;
    await sql.begin(async (transaction) => {
      await transaction`select 1 from operator_access for update`;
      const [before] = await transaction<PersonRow[]>`
        select * from operator_people where id = ${String(personId)}`;
      if (before === undefined) throw new Problem(404, 'NO_SUCH_OPERATOR', 'There is no such operator.');
      await transaction`update operator_people set role_set = ${wanted.role} where id = ${String(personId)}`;
      const after = this.#roleOf({ ...before, role_set: wanted.role });
      const isLast = after !== 'admin' && (await this.#admins(transaction)).length === 0;
      if (isLast && this.#roleOf(before) === 'admin') {
        const [access] = await transaction<{ off: boolean }[]>`
          select tokens_off_at is not null as off from operator_access`;
        if (access?.off === true || !hasTokens()) throw lastAdmin();
      }
      if (after === null)
        await transaction`
          update operator_sessions set ended_at = ${iso(nowMs())}, ended_why = 'role_taken'
          where person_id = ${String(personId)} and ended_at is null`;
      await trail.note('role_set', by, {
        address,
        about: {
          person: before.actor,
          from: this.#roleOf(before),
          to: after,
          set: wanted.role,
          reason: wanted.reason,
        },
        on: transaction,
      });
    });
  }

  /**
   * Turns the tokens off, or on again.
   *
   * @throws Problem 409 NO_ADMIN_SIGNED_IN where nobody else could come in; 409 ADMIN_SESSION_NEEDED where a token asks
   */
  async setTokens(
    wanted: { enabled: boolean; reason: string },
    by: Omit<Operator, 'role'> & { role: Role | null },
    address: string | null,
  ): Promise<void> {
    const { sql, trail, nowMs } = this.#parts;
    await sql.begin(async (transaction) => {
      await transaction`select 1 from operator_access for update`;
      if (!wanted.enabled && (await this.#admins(transaction)).length === 0)
        throw new Problem(
          409,
          'NO_ADMIN_SIGNED_IN',
          'Nobody with the role admin has signed in yet. Sign in first, so that somebody can come in without a token.',
        );
      if (!wanted.enabled && by.person === null)
        throw new Problem(
          409,
          'ADMIN_SESSION_NEEDED',
          'A token cannot turn tokens off. Sign in at the provider and do it there, which shows that you can.',
        );
      const at = wanted.enabled ? null : iso(nowMs());
      await transaction`
        update operator_access set tokens_off_at = ${at}, tokens_off_by = ${wanted.enabled ? null : by.actor}`;
      const kind = wanted.enabled ? 'tokens_on' : 'tokens_off';
      await trail.note(kind, by, { address, about: { reason: wanted.reason }, on: transaction });
    });
  }

  /** Everybody who ever signed in, with the sessions that are not over. */
  async list(): Promise<object[]> {
    const { sql, issuer, rules, bounds, nowMs } = this.#parts;
    const now = nowMs();
    const rows = await sql<PersonRow[]>`select * from operator_people order by last_at desc limit ${LISTED}`;
    const sessions = await sql<SessionRow[]>`
      select * from operator_sessions where ended_at is null and ends_at > ${iso(now)}
        and seen_at > ${iso(now - bounds.idleMs)} order by began_at desc limit ${LISTED}`;
    return rows.map((row) => ({
      operatorId: String(row.id),
      actor: row.actor,
      email: row.email,
      issuer: row.issuer,
      subject: row.subject,
      role: this.#roleOf(row),
      roleByProvider: row.issuer === issuer ? roleOf(row.claims, rules) : null,
      roleSet: row.role_set,
      firstAt: row.first_at.toISOString(),
      lastAt: row.last_at.toISOString(),
      sessions: sessions.filter((session) => session.person_id === row.id).map(sessionAsJson),
    }));
  }
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

function operatorOf(row: PersonRow, role: Role, sessionId: string): Operator {
  const { id, issuer, subject, email } = row;
  return { actor: row.actor, role, person: { id, issuer, subject, email, sessionId } };
}

interface SessionRow {
  id: string;
  person_id: bigint;
  address: string;
  agent: string | null;
  began_at: Date;
  seen_at: Date;
  ends_at: Date;
}

function sessionAsJson(row: SessionRow) {
  return {
    sessionId: row.id,
    address: row.address,
    agent: row.agent,
    beganAt: row.began_at.toISOString(),
    seenAt: row.seen_at.toISOString(),
    endsAt: row.ends_at.toISOString(),
  };
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

function refused({ email }: SignedIn): Problem {
  return new Problem(
    403,
    'SIGN_IN_REFUSED',
    `You are signed in at the provider${email === null ? ', which told no verified e-mail address' : ` as ${email}`}. No role here belongs to you: ask an operator with the role admin, or whoever sets ADMIN_ROLES.`,
  );
}

function lastAdmin(): Problem {
  return new Problem(
    409,
    'LAST_ADMIN',
    `This is the last operator with the role ${ROLES.at(-1)}, and tokens are off: nobody could give roles any more. Turn tokens on first, or make somebody else an admin.`,
  );
}
