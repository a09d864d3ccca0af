/** How tests make the facilitator fail. */
import { getBase58Decoder } from '@solana/kit';
import type { FastifyInstance } from 'fastify';
import { keccak256, stringToBytes } from 'viem';
import { fieldsOf, isIntegerIn, openFaults } from '../faults.ts';

const MAX_TIMES = 100_000;
const MAX_DELAY_MS = 600_000;
const MAX_TEXT_CHARACTERS = 4_096;
const DEFAULT_GARBAGE = '<!doctype html><html><head><title>Just a moment</title></head></html>';

const KINDS = [
  'refuse',
  'refuse-after-broadcast',
  'throw-before-broadcast',
  'throw-after-broadcast',
  'drop-before',
  'drop-after-broadcast',
  'late',
  'never',
  'pending',
  'lie',
  'garbage',
] as const;

export type Step = 'verify' | 'settle';

/** One fault as it is ordered and listed. Each is for one step and strikes its next `times` requests. */
export interface Fault {
  on: Step;
  /**
   * - refuse: isValid false, or success false, with `errorReason`; nothing is looked at or sent.
   * - refuse-after-broadcast: does its work (settles on chain), then answers as `refuse` does.
   * - throw-before-broadcast: status 500, nothing moved.
   * - throw-after-broadcast: does its work (settles on chain), then status 500.
   * - drop-before: the connection is torn down before anything is done.
   * - drop-after-broadcast: does its work, then tears the connection down.
   * - late: does its work after `delayMs`, then answers.
   * - never: no answer; with `broadcast` it does its work first.
   * - pending (settle only): success false, settlement_pending and a transaction: sent for real with `broadcast`
   *   (a later settle of the same v2 payment finds it), made up and never sent without.
   * - lie: isValid true without a check; or success true with a transaction that does not exist, nothing moved.
   * - garbage: status 200 with `text` instead of an answer, nothing moved.
   */
  fault: (typeof KINDS)[number];
  /** How many more requests it strikes. */
  times: number;
  errorReason: string;
  delayMs: number;
  broadcast: boolean;
  text: string;
}

export interface Counts {
  verify: number;
  settle: number;
  /** Transactions given to a node, deployments of smart wallets among them. */
  broadcasts: number;
}

export interface Faults {
  /** Serves `/__control`: POST orders, GET lists, DELETE forgets faults and counts. */
  control(app: FastifyInstance): void;
  /** Counts a request of /verify or /settle, or a transaction given to a node. */
  count(what: keyof Counts): void;
  /** Takes the fault that strikes this request, if one is due. */
  take(step: Step): Fault | null;
}

/** Opens the fault control; it starts without any fault. */
export function openFacilitatorFaults(): Faults {
  const faults = openFaults('times', readFault);
  let counts: Counts = { verify: 0, settle: 0, broadcasts: 0 };
  const state = () => ({ counts, faults: faults.list() });

  return {
    control(app) {
      app.get('/__control', state);
      app.delete('/__control', () => {
        faults.clear();
        counts = { verify: 0, settle: 0, broadcasts: 0 };
        return state();
      });
      app.post<{ Body: unknown }>('/__control', ({ body }, reply) => {
        const bodies = fieldsOf(body).faults;
        const ordered = Array.isArray(bodies) ? faults.order(...bodies) : 'faults must be an array';
        return typeof ordered === 'string'
          ? reply.code(400).send({ error: ordered })
          : reply.code(201).send(state());
      });
    },

    count(what) {
      counts[what] += 1;
    },

    take: (step) => faults.take(({ on }) => on === step),
  };
}

/** Reads one ordered fault; a text says what is wrong with it. */
function readFault(order: unknown): Fault | string {
  const fields = fieldsOf(order);
  const { on, times = 1, errorReason = '', delayMs = 0, broadcast = true, text = DEFAULT_GARBAGE } = fields;
  const fault = KINDS.find((kind) => kind === fields.fault);
  if (on !== 'verify' && on !== 'settle') return 'on must be verify or settle';
  if (fault === undefined) return `fault must be one of ${KINDS.join(', ')}`;
  if (fault === 'pending' && on === 'verify') return 'pending is for settle';
  if (!isIntegerIn(times, 1, MAX_TIMES)) return `times must be an integer from 1 to ${MAX_TIMES}`;
  if (!isIntegerIn(delayMs, 0, MAX_DELAY_MS)) return `delayMs must be an integer from 0 to ${MAX_DELAY_MS}`;
  if (fault === 'late' && delayMs === 0) return 'late needs delayMs';
  if (typeof broadcast !== 'boolean') return 'broadcast must be true or false';
  if (typeof errorReason !== 'string' || errorReason.length > MAX_TEXT_CHARACTERS) {
    return `errorReason must be a text of at most ${MAX_TEXT_CHARACTERS} characters`;
  }
  if (fault.startsWith('refuse') && errorReason === '') return `${fault} needs errorReason`;
  if (typeof text !== 'string' || text.length > MAX_TEXT_CHARACTERS) {
    return `text must be a text of at most ${MAX_TEXT_CHARACTERS} characters`;
  }
  return { on, fault, times, errorReason, delayMs, broadcast, text };
}

/** A well-formed transaction id that no chain knows; always the same for the same payment. */
export function bogusTransaction(network: string, payload: unknown): string {
  const hash = keccak256(stringToBytes(JSON.stringify(payload)));
  if (!network.startsWith('solana')) return hash;
  const half = keccak256(hash, 'bytes');
  return getBase58Decoder().decode(new Uint8Array([...half, ...half]));
}
