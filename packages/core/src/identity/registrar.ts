import {
  type Address,
  decodeEventLog,
  encodeFunctionData,
  getAddress,
  type Hex,
  isAddressEqual,
  toEventSelector,
} from 'viem';
import { claimAgentId } from '../custody/agent-id-claims.ts';
import type { Owner } from '../custody/owner.ts';
import type { Database } from '../db/connection.ts';
import type { Identities, RegisteredIdentity } from '../service/define.ts';
import { foldedAgentId } from '../words/agent-id.ts';
import { noAnswer, ServiceFailure } from '../words/failure.ts';
import { registryAbi } from './registry-abi.ts';

/** How long a call that died may keep others from an agentId: longer than any call runs. */
const CLAIM_MS = 60_000;

const REGISTERED = toEventSelector('Registered(uint256,string,address)');

/** Sends transactions from the registrar's account and waits until they are mined. */
export interface TransactionSender {
  readonly address: Address;
  /** The same `id` is the same transaction, also after a restart. */
  send(tx: { id: string; to: Address; data: Hex; gasLimit?: bigint }): Promise<{
    hash: Hex;
    status: 'success' | 'reverted';
    logs: readonly EventLog[];
  }>;
}

/** As much of an event as identifies and decodes it. */
export interface EventLog {
  address: Address;
  topics: readonly Hex[];
  data: Hex;
}

export interface Registrar {
  /** The identities of one payer, as services see them. */
  paidBy(owner: Owner): Identities;
}

interface IdentityRow {
  agent_id: string;
  agent_uri: string;
  holder: string | null;
  transaction_key: string;
  claimed_by: string;
  claimed_at: Date | null;
  token_id: string | null;
  register_transaction: Hex | null;
  transfer_transaction: Hex | null;
  completed_at: Date | null;
}

type Request = Parameters<Identities['register']>[0];

interface RegistrarParts {
  sql: Database;
  sender: TransactionSender;
  chainId: number;
  registry: Address;
  nowMs: () => number;
}

/**
 * Registers ERC-8004 identities, each once. What is to be registered stands in the database before the first transaction
 * is sent, and transactions have ids, so that whoever goes on after a crash finds what was sent and sends only the rest.
 */
export function createRegistrar(parts: RegistrarParts): Registrar {
  return { paidBy: (owner) => new OwnedIdentities(owner, parts) };
}

/** The identities of one payer. */
class OwnedIdentities implements Identities {
  readonly chainId: number;
  readonly registry: Address;
  readonly #owner: Owner;
  readonly #parts: RegistrarParts;

  constructor(owner: Owner, parts: RegistrarParts) {
    this.chainId = parts.chainId;
    this.registry = parts.registry;
    this.#owner = owner;
    this.#parts = parts;
  }

  async claim({ callId, agentId }: Parameters<Identities['claim']>[0]): Promise<void> {
    const { sql, nowMs } = this.#parts;
    const row = await this.#kept(agentId);
    if (row !== null && row.claimed_by !== callId) {
      if (row.completed_at !== null) throw this.#exists(row);
      if (row.claimed_at !== null && row.claimed_at.getTime() > nowMs() - CLAIM_MS) throw inProgress();
    }
    const claim = { kind: 'identity' as const, owner: this.#owner, agentId, callId, nowMs: nowMs() };
    if (!(await sql.begin((transaction) => claimAgentId(transaction, claim)))) throw inProgress();
  }

  async register({ owner: holder, ...rest }: Request): Promise<RegisteredIdentity> {
    const request = { ...rest, owner: holder === null ? null : getAddress(holder) };
    let row = await this.#take(request);
    if (row.completed_at === null) {
      try {
        row = await this.#complete(row);
      } catch (error) {
        await this.#letGo(row, request.callId);
        throw error;
      }
    }
    // What an earlier call left half done was its own: it is finished now, but it is not what this call asked for.
    if (row.agent_uri !== request.agentUri || row.holder !== request.owner) throw this.#exists(row);
    return this.#identityOf(row);
  }

  /**
   * Makes this call the one that registers the agent; finds the row complete when it has done so before.
   *
   * @throws ServiceFailure when another call has registered the agent, or is at it
   */
  async #take({ callId, agentId, agentUri, owner: holder }: Request): Promise<IdentityRow> {
    const { sql, nowMs } = this.#parts;
    const now = new Date(nowMs()).toISOString();
    if ((await this.#kept(agentId)) === null) {
      const [fresh] = await sql<IdentityRow[]>`
        insert into agent_identities
          (owner, agent_id, agent_key, agent_uri, holder, transaction_key, claimed_by, claimed_at)
        values (${this.#owner}, ${agentId}, ${foldedAgentId(agentId)}, ${agentUri}, ${holder}, ${callId}, ${callId}, ${now})
        on conflict do nothing returning *`;
      if (fresh !== undefined) return fresh;
    }
    const row = await this.#kept(agentId);
    // The registry refused the other call a moment ago, and its row is gone.
    if (row === null) throw inProgress();
    const staleBefore = new Date(nowMs() - CLAIM_MS).toISOString();
    const [taken] = await sql<IdentityRow[]>`
      update agent_identities set claimed_by = ${callId}, claimed_at = ${now}
      where owner = ${this.#owner} and agent_id = ${row.agent_id} and completed_at is null
        and (claimed_by = ${callId} or claimed_at is null or claimed_at <= ${staleBefore})
      returning *`;
    if (taken !== undefined) return taken;
    const done = await this.#kept(agentId);
    if (done === null || done.completed_at === null) throw inProgress();
    if (done.claimed_by === callId) return done;
    throw this.#exists(done);
  }

  /**
   * The payer's row for an agent. Rows from before ids were folded may differ from each other by case alone, so the one
   * with the very id comes first.
   */
  async #kept(agentId: string): Promise<IdentityRow | null> {
    const folded = foldedAgentId(agentId);
    const [row] = await this.#parts.sql<IdentityRow[]>`
      select * from agent_identities
      where owner = ${this.#owner}
        and (agent_key = ${folded} or agent_key is null and lower(agent_id) in (lower(${agentId}), ${folded}))
      order by agent_id <> ${agentId}, completed_at limit 1`;
    return row ?? null;
  }

  /** Lets the next call go on at once. If this fails too, it goes on a minute later. */
  async #letGo({ agent_id: agentId }: IdentityRow, callId: string): Promise<void> {
    await this.#parts.sql`
      update agent_identities set claimed_at = null
      where owner = ${this.#owner} and agent_id = ${agentId} and claimed_by = ${callId}`.catch(() => {});
  }

  /** Sends what is still to be sent. */
  async #complete(row: IdentityRow): Promise<IdentityRow> {
    const { sql, nowMs } = this.#parts;
    const { transaction_key: key, agent_id: agentId } = row;
    const tokenId = await this.#mint(row);
    const transfer = row.holder === null ? null : await this.#handOver(key, getAddress(row.holder), tokenId);
    const [done] = await sql<IdentityRow[]>`
      update agent_identities
      set transfer_transaction = ${transfer}, completed_at = ${new Date(nowMs()).toISOString()}
      where owner = ${this.#owner} and agent_id = ${agentId} and transaction_key = ${key}
      returning *`;
    if (done === undefined) throw new Error(`the identity that ${key} registered is not on record any more`);
    return done;
  }

  /** Registers the agent, and writes down its token. */
  async #mint({ agent_id: agentId, transaction_key: key, agent_uri: uri }: IdentityRow): Promise<bigint> {
    const { sql, sender, registry } = this.#parts;
    const registered = await sender.send({
      id: `${key}:register`,
      to: registry,
      data: encodeFunctionData({ abi: registryAbi, functionName: 'register', args: [uri] }),
    });
    if (registered.status === 'reverted') {
      // Nothing came of it, so the agentId is free again.
      await sql`delete from agent_identities where owner = ${this.#owner} and agent_id = ${agentId} and transaction_key = ${key}`;
      throw refusedByRegistry('The registry refused the registration', registered.hash);
    }
    const tokenId = this.#tokenIdOf(registered.logs, registered.hash);
    await sql`
      update agent_identities set token_id = ${String(tokenId)}, register_transaction = ${registered.hash}
      where owner = ${this.#owner} and agent_id = ${agentId} and transaction_key = ${key}`;
    return tokenId;
  }

  async #handOver(key: string, holder: Address, tokenId: bigint): Promise<Hex> {
    const { sender, registry } = this.#parts;
    const args = [sender.address, holder, tokenId] as const;
    const sent = await sender.send({
      id: `${key}:transfer`,
      to: registry,
      data: encodeFunctionData({ abi: registryAbi, functionName: 'transferFrom', args }),
    });
    if (sent.status === 'reverted') throw refusedByRegistry('The registry refused the hand-over', sent.hash);
    return sent.hash;
  }

  /** The token that a transaction registered for us. */
  #tokenIdOf(logs: readonly EventLog[], hash: Hex): bigint {
    const { sender, registry } = this.#parts;
    for (const { address, topics, data } of logs) {
      const [topic, ...indexed] = topics;
      if (topic !== REGISTERED || !isAddressEqual(address, registry)) continue;
      const event = { abi: registryAbi, eventName: 'Registered', data } as const;
      const { args } = decodeEventLog({ ...event, topics: [topic, ...indexed] });
      if (isAddressEqual(args.owner, sender.address)) return args.agentId;
    }
    throw new Error(`transaction ${hash} registered nothing`);
  }

  #identityOf(row: IdentityRow): RegisteredIdentity {
    if (row.token_id === null || row.register_transaction === null)
      throw new Error('an identity is complete that was never registered');
    return {
      tokenId: BigInt(row.token_id),
      owner: row.holder === null ? this.#parts.sender.address : getAddress(row.holder),
      agentUri: row.agent_uri,
      registerTransaction: row.register_transaction,
      transferTransaction: row.transfer_transaction,
    };
  }

  #exists(row: IdentityRow): ServiceFailure {
    const { chainId, registry } = this.#parts;
    return noAnswer(
      'IDENTITY_EXISTS',
      `You have registered ${row.agent_id} before: token ${row.token_id} of eip155:${chainId}:${registry}, transaction ${row.register_transaction}. Nothing was registered now; case does not count in an agentId.`,
      'agentId',
    );
  }
}

function inProgress(): ServiceFailure {
  return new ServiceFailure({
    status: 503,
    code: 'IDENTITY_IN_PROGRESS',
    message: 'Another call of yours is registering this agentId, or is about to pay for it.',
    field: 'agentId',
    retryAfterMs: 5_000,
  });
}

function refusedByRegistry(what: string, hash: Hex): ServiceFailure {
  return new ServiceFailure({
    status: 502,
    code: 'REGISTRY_REFUSED',
    message: `${what} in transaction ${hash}.`,
  });
}
