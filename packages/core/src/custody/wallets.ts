import { randomUUID } from 'node:crypto';
import { arrayLiteral } from '../db/array-literal.ts';
import type { Database, Transaction } from '../db/connection.ts';
import type { Custody, ManagedWallet } from '../service/define.ts';
import { foldedAgentId } from '../words/agent-id.ts';
import { CHAINS, type ChainName } from '../words/chain-names.ts';
import { ServiceFailure } from '../words/failure.ts';
import { claimAgentId } from './agent-id-claims.ts';
import { type Keyring, Unreadable } from './envelope.ts';
import { freshKey, type KeyKind, type WalletKey, writtenKey } from './fresh-key.ts';
import type { Owner } from './owner.ts';
import { newWalletSecret } from './wallet-secret.ts';

/** A stored wallet, without its keys. */
export interface StoredWallet extends ManagedWallet {
  owner: string;
  secretDigest: Buffer;
  /** Null while it lives. Its keys are gone from then on. */
  deletedAtMs: number | null;
}

export interface ExportedKey {
  /** The networks of the wallet that this key serves. */
  networks: ChainName[];
  address: string;
  /** 0x and 64 hex digits on EVM chains; base58 of 64 bytes on Solana. */
  privateKey: string;
}

/** Who acts on a wallet, for its history. */
export interface Actor {
  /** Such as `key:12` or `wallet-secret`; never a secret. */
  name: string;
  /** The HTTP request; null for a paid call, whose id is in its name. */
  requestId: string | null;
}

/** The house's keeping of wallets. Private keys leave it through `exportKeys` and no other way. */
export interface Wallets {
  /** The wallets of one payer, as services see them. */
  paidBy(owner: Owner): Custody;
  /** Null when there never was such a wallet. */
  find(walletId: string): Promise<StoredWallet | null>;
  /**
   * The private keys. That they were asked for is on record before they are.
   *
   * @returns null when the wallet is deleted or does not exist
   * @throws Unreadable when a stored key was changed, or its key-encryption key is not configured
   */
  exportKeys(walletId: string, actor: Actor): Promise<ExportedKey[] | null>;
  /** Destroys the wallet's keys, for good. To destroy them again changes nothing. */
  destroy(walletId: string, actor: Actor): Promise<void>;
  /** Puts on record that somebody was turned away. */
  refused(walletId: string, actor: Actor): Promise<void>;
  /**
   * Brings keys under the current key-encryption key, so that an older one can be taken out of the configuration.
   *
   * @param limit most keys to look at
   * @returns how many were looked at; 0 when none is left that can be brought over
   * @throws the first failure, after the other keys had their turn: what cannot be read is passed by from then on
   */
  rewrap(limit: number): Promise<number>;
  /** Key-encryption keys that wallets are under and that are not configured: those wallets cannot be exported. */
  missingKeyIds(): Promise<string[]>;
}

type WalletRequest = Parameters<Custody['walletFor']>[0];

interface WalletRow {
  id: string;
  owner: string;
  agent_id: string;
  agent_name: string | null;
  purpose: string | null;
  networks: ChainName[];
  secret_digest: Buffer;
  created_by_call: string;
  created_at: Date;
  deleted_at: Date | null;
}

interface KeyRow {
  wallet_id: string;
  kind: KeyKind;
  address: string;
  kek_id: string | null;
  wrapped_data_key: Buffer | null;
  ciphertext: Buffer | null;
}

/** How many keys that cannot be read are passed by: more of them are no single wallet's fault. */
const MAX_PASSED_BY = 1_000;

/** A wallet that was made or found. */
interface Found {
  row: WalletRow;
  bought: 'wallet' | 'networks' | 'nothing';
  /** Null: its owner has the secret already. */
  walletSecret: string | null;
}

/** Wallets in a database, under a keyring. */
export function createWallets(sql: Database, parts: { keyring: Keyring; nowMs: () => number }): Wallets {
  return new KeptWallets(sql, parts);
}

class KeptWallets implements Wallets {
  readonly #sql: Database;
  readonly #keyring: Keyring;
  readonly #nowMs: () => number;
  /** Keys that could not be brought over, as `wallet_id:kind`. Each was told once; none may keep the others from their turn. */
  readonly #unreadable = new Set<string>();

  constructor(sql: Database, parts: { keyring: Keyring; nowMs: () => number }) {
    this.#sql = sql;
    this.#keyring = parts.keyring;
    this.#nowMs = parts.nowMs;
  }

  paidBy(owner: Owner): Custody {
    return {
      claim: (request) => this.#claim(owner, request),
      walletFor: (request) => this.#walletFor(owner, request),
    };
  }

  async find(walletId: string): Promise<StoredWallet | null> {
    const [row] = await this.#sql<WalletRow[]>`select * from managed_wallets where id = ${walletId}`;
    if (row === undefined) return null;
    return {
      ...(await shown(this.#sql, row)),
      owner: row.owner,
      secretDigest: row.secret_digest,
      deletedAtMs: row.deleted_at?.getTime() ?? null,
    };
  }

  async exportKeys(walletId: string, actor: Actor): Promise<ExportedKey[] | null> {
    const keys = await this.#sql.begin(async (transaction) => {
      // The lock on the keys puts a deletion at the same time wholly before this or wholly after it.
      const rows = await transaction<(KeyRow & Pick<WalletRow, 'networks'>)[]>`
        select k.*, w.networks from managed_wallet_keys k join managed_wallets w on w.id = k.wallet_id
        where k.wallet_id = ${walletId} order by k.kind for share of k`;
      const found = rows.map((row) => ({ row, sealed: sealedOf(row) }));
      if (found.every(({ sealed }) => sealed === null)) return null;
      await this.#record(transaction, walletId, 'exported', actor);
      return found;
    });
    if (keys === null) return null;
    return keys.map(({ row, sealed }) => {
      if (sealed === null) throw new Error(`wallet ${walletId} has lost one of its keys`);
      const secret = this.#keyring.open(sealed, bindingOf(walletId, row));
      const privateKey = writtenKey({ kind: row.kind, secret });
      secret.fill(0);
      const networks = row.networks.filter((network) => kindOf(network) === row.kind);
      return { networks, address: row.address, privateKey };
    });
  }

  async destroy(walletId: string, actor: Actor): Promise<void> {
    await this.#sql.begin(async (transaction) => {
      const deleted = await transaction`
        update managed_wallets set deleted_at = ${this.#now()} where id = ${walletId} and deleted_at is null`;
      if (deleted.count === 0) return;
      await transaction`
        update managed_wallet_keys set kek_id = null, wrapped_data_key = null, ciphertext = null
        where wallet_id = ${walletId}`;
      await this.#record(transaction, walletId, 'deleted', actor);
    });
  }

  async refused(walletId: string, actor: Actor): Promise<void> {
    await this.#record(this.#sql, walletId, 'refused', actor);
  }

  async rewrap(limit: number): Promise<number> {
    const sql = this.#sql;
    const older = this.#keyring.ids.filter((id) => id !== this.#keyring.currentId);
    if (older.length === 0) return 0;
    const rows = await sql<KeyRow[]>`
      select * from managed_wallet_keys
      where kek_id in ${sql(older)}
        and wallet_id || ':' || kind <> all(${arrayLiteral([...this.#unreadable])}::text::text[])
      order by wallet_id, kind limit ${limit} for update skip locked`;
    const failures: unknown[] = [];
    for (const row of rows) {
      await this.#rewrapOne(row).catch((error: unknown) => {
        if (error instanceof Unreadable && this.#unreadable.size < MAX_PASSED_BY)
          this.#unreadable.add(`${row.wallet_id}:${row.kind}`);
        failures.push(error);
      });
    }
    if (failures.length > 0) throw failures[0];
    return rows.length;
  }

  async missingKeyIds(): Promise<string[]> {
    const rows = await this.#sql<{ kek_id: string }[]>`
      select distinct kek_id from managed_wallet_keys where kek_id is not null`;
    return rows.map((row) => row.kek_id).filter((id) => !this.#keyring.ids.includes(id));
  }

  /** Keeps an agentId for a call, unless its wallet is there. */
  #claim(owner: Owner, request: Parameters<Custody['claim']>[0]): ReturnType<Custody['claim']> {
    const { callId, agentId, networks } = request;
    return this.#sql.begin(async (transaction) => {
      const row = await this.#kept(transaction, owner, agentId);
      if (row !== null && inOrder([...row.networks, ...networks]).length === row.networks.length)
        return shown(transaction, row);
      const claim = { kind: 'wallet' as const, owner, agentId, callId, nowMs: this.#nowMs() };
      if (await claimAgentId(transaction, claim)) return null;
      throw new ServiceFailure({
        status: 503,
        code: 'WALLET_IN_PROGRESS',
        message: 'Another payment of yours is about to buy the wallet of this agentId.',
        field: 'agentId',
        retryAfterMs: 5_000,
      });
    });
  }

  /** The wallet of a payer for this agent, made if there is none. Between the two it may be deleted; then it is made anew. */
  async #walletFor(owner: Owner, request: WalletRequest): ReturnType<Custody['walletFor']> {
    return this.#sql.begin(async (transaction) => {
      const found =
        (await this.#reuse(transaction, owner, request)) ??
        (await this.#create(transaction, owner, request)) ??
        (await this.#reuse(transaction, owner, request)) ??
        (await this.#create(transaction, owner, request));
      if (found === null) throw new Error('the wallet was deleted and made again in the same moment');
      const { row, bought, walletSecret } = found;
      return { wallet: await shown(transaction, row), bought, walletSecret };
    });
  }

  /** @returns null when the payer has a wallet for this agent */
  async #create(on: Transaction, owner: Owner, request: WalletRequest): Promise<Found | null> {
    const { walletSecret, digest } = newWalletSecret();
    const networks = inOrder(request.networks);
    const [row] = await on<WalletRow[]>`
      insert into managed_wallets
        (id, owner, agent_id, agent_key, agent_name, purpose, networks, secret_digest, created_by_call, created_at)
      values (${randomUUID()}, ${owner}, ${request.agentId}, ${foldedAgentId(request.agentId)}, ${request.agentName},
              ${request.purpose}, ${arrayLiteral(networks)}::text::text[], ${digest}, ${request.callId}, ${this.#now()})
      on conflict do nothing
      returning *`;
    if (row === undefined) return null;
    await this.#addKeys(on, row.id, networks, []);
    await this.#record(on, row.id, 'created', { name: `call:${request.callId}`, requestId: null });
    return { row, bought: 'wallet', walletSecret };
  }

  /** @returns null when there is no wallet, or it was deleted a moment ago */
  async #reuse(on: Transaction, owner: Owner, request: WalletRequest): Promise<Found | null> {
    const row = await this.#kept(on, owner, request.agentId);
    if (row === null) return null;
    const actor = { name: `call:${request.callId}`, requestId: null };
    const networks = inOrder([...row.networks, ...request.networks]);
    const isExtended = networks.length > row.networks.length;
    if (isExtended) {
      await this.#addKeys(on, row.id, networks, [...new Set(row.networks.map(kindOf))]);
      await on`
        update managed_wallets set networks = ${arrayLiteral(networks)}::text::text[] where id = ${row.id}`;
      await this.#record(on, row.id, 'extended', actor);
    }
    if (row.created_by_call !== request.callId) {
      const bought = isExtended || (await this.#hasExtended(on, row.id, actor)) ? 'networks' : 'nothing';
      return { row: { ...row, networks }, bought, walletSecret: null };
    }
    // The call that made the wallet runs again, so its first answer was never sent, and its owner never got the secret.
    const { walletSecret, digest } = newWalletSecret();
    await on`update managed_wallets set secret_digest = ${digest} where id = ${row.id}`;
    await this.#record(on, row.id, 'secret_renewed', actor);
    return { row: { ...row, networks }, bought: 'wallet', walletSecret };
  }

  /** Whether it was this call that added networks: it runs again, since its first answer was never sent. */
  async #hasExtended(on: Transaction, walletId: string, { name }: Actor): Promise<boolean> {
    const rows = await on`
      select 1 from managed_wallet_events
      where wallet_id = ${walletId} and action = 'extended' and actor = ${name} limit 1`;
    return rows.length > 0;
  }

  /**
   * The wallet that a payer has for an agent, locked until the commit. Rows from before ids were folded may differ from
   * each other by case alone, so the one with the very id comes first.
   */
  async #kept(on: Transaction, owner: Owner, agentId: string): Promise<WalletRow | null> {
    const folded = foldedAgentId(agentId);
    const [row] = await on<WalletRow[]>`
      select * from managed_wallets
      where owner = ${owner} and deleted_at is null
        and (agent_key = ${folded} or agent_key is null and lower(agent_id) in (lower(${agentId}), ${folded}))
      order by agent_id <> ${agentId}, created_at limit 1 for update`;
    return row ?? null;
  }

  /** Makes the keys that the networks need and that are not there yet. */
  async #addKeys(on: Transaction, walletId: string, networks: readonly ChainName[], had: readonly KeyKind[]) {
    for (const kind of new Set(networks.map(kindOf))) {
      if (had.includes(kind)) continue;
      const key = freshKey(kind);
      const sealed = this.#keyring.seal(key.secret, bindingOf(walletId, key));
      key.secret.fill(0);
      await on`
        insert into managed_wallet_keys (wallet_id, kind, address, kek_id, wrapped_data_key, ciphertext)
        values (${walletId}, ${kind}, ${key.address}, ${sealed.kekId}, ${sealed.wrappedDataKey}, ${sealed.ciphertext})`;
    }
  }

  /** Brings a key over, unless somebody deleted it, or brought it over, in the meantime. @throws Unreadable */
  async #rewrapOne(row: KeyRow): Promise<void> {
    const sealed = sealedOf(row);
    if (sealed === null) return;
    const { kekId, wrappedDataKey } = this.#keyring.rewrap(sealed, bindingOf(row.wallet_id, row));
    await this.#sql`
      update managed_wallet_keys set kek_id = ${kekId}, wrapped_data_key = ${wrappedDataKey}
      where wallet_id = ${row.wallet_id} and kind = ${row.kind} and kek_id = ${sealed.kekId}`;
  }

  async #record(on: Database | Transaction, walletId: string, action: string, actor: Actor): Promise<void> {
    await on`
      insert into managed_wallet_events (wallet_id, at, action, actor, request_id)
      values (${walletId}, ${this.#now()}, ${action}, ${actor.name}, ${actor.requestId})`;
  }

  #now(): string {
    return new Date(this.#nowMs()).toISOString();
  }
}

async function shown(on: Database | Transaction, row: WalletRow): Promise<ManagedWallet> {
  const keys = await on<Pick<KeyRow, 'kind' | 'address'>[]>`
    select kind, address from managed_wallet_keys where wallet_id = ${row.id}`;
  return {
    walletId: row.id,
    agentId: row.agent_id,
    agentName: row.agent_name,
    purpose: row.purpose,
    addresses: row.networks.map((network) => {
      const key = keys.find(({ kind }) => kind === kindOf(network));
      if (key === undefined) throw new Error(`wallet ${row.id} has no key for ${network}`);
      return { network, address: key.address };
    }),
    createdAtMs: row.created_at.getTime(),
  };
}

function kindOf(network: ChainName): KeyKind {
  return network === 'solana' ? 'solana' : 'evm';
}

function inOrder(networks: readonly ChainName[]): ChainName[] {
  return CHAINS.filter((chain) => networks.includes(chain));
}

/** Authenticated data of a stored key. The key does not decrypt beside another wallet, kind or address. */
function bindingOf(walletId: string, { kind, address }: Pick<WalletKey, 'kind' | 'address'>): string {
  return `${walletId}:${kind}:${address}`;
}

/** Null once it is destroyed. */
function sealedOf({ kek_id: kekId, wrapped_data_key: wrappedDataKey, ciphertext }: KeyRow) {
  return kekId === null || wrappedDataKey === null || ciphertext === null
    ? null
    : { kekId, wrappedDataKey, ciphertext };
}
