/** How tests make the node fail in the ways in which real nodes fail. */
import { setTimeout as passed } from 'node:timers/promises';
import { fieldsOf, openFaults } from '../faults.ts';
import type { Bank } from './bank.ts';
import { LostReply, RpcError } from './json-rpc.ts';
import { type Config, choiceOf, integerOf, invalid } from './params.ts';

const MAX_DELAY_MS = 60_000;
const MAX_COUNT = 1_000_000;

/**
 * - drop-reply: does what is asked, then cuts the connection without a reply
 * - refuse: does nothing and answers with a node's error −32005
 * - behind: answers reads from the chain as it was when the fault was ordered, like a node that fell behind
 * - fails-landing: the lending program's double refuses everything while a transaction lands, but not while it is simulated
 * - never-lands: answers `sendTransaction` with the signature and does nothing, as when the network loses a transaction
 * - status: does nothing and answers with an HTTP status, 500 unless `httpStatus` is given
 * - delay: waits for `delayMs` before anything is done
 */
const FAULTS = ['drop-reply', 'refuse', 'never-lands', 'fails-landing', 'behind', 'status', 'delay'] as const;
/** The faults that strike every method unless one is named. The others strike `sendTransaction` unless one is named. */
const OF_ALL_METHODS: readonly Fault['fault'][] = ['behind', 'status', 'delay'];

export interface Fault {
  fault: (typeof FAULTS)[number];
  /** The method that it strikes; null: every method but the sandbox's own. */
  method: string | null;
  /** How many more calls it strikes. */
  count: number;
  httpStatus: number;
  delayMs: number;
}

export interface Faults {
  /** Adds a fault, read from a call's options, and returns all faults that are set. */
  set(config: Config): readonly Fault[];
  clear(): void;
  /** Counts a call, and does what the faults that strike it do before it is run. @throws RpcError or LostReply */
  strikeBefore(method: string): Promise<Struck>;
}

export interface Struck {
  /** What happens to a transaction that is sent. */
  sent: 'lands' | 'never-lands' | 'fails-landing';
  /** The earlier chain from which the call is answered; null: the chain as it is now. */
  behind: Bank | null;
  /** Does what the faults do after the call was run. @throws LostReply */
  strikeAfter(): void;
}

/** @param freeze returns a copy of the chain as it is now */
export function openNodeFaults(freeze: () => Bank): Faults {
  const faults = openFaults('count', (config) => readFault(fieldsOf(config)));
  const frozen = new WeakMap<Fault, Bank>();
  return {
    set(config) {
      const ordered = faults.order(config);
      if (typeof ordered === 'string') throw invalid(`Invalid params: ${ordered}.`);
      for (const one of ordered) if (one.fault === 'behind') frozen.set(one, freeze());
      return faults.list();
    },
    clear: faults.clear,
    async strikeBefore(method) {
      const hit = method.startsWith('sandbox_')
        ? []
        : faults.takeAll((one) => one.method === null || one.method === method);
      for (const { fault, delayMs, httpStatus } of hit) {
        if (fault === 'delay') await passed(delayMs);
        if (fault === 'status') throw new LostReply(httpStatus);
        if (fault === 'refuse')
          throw new RpcError(-32005, 'Node is behind by 42 slots', { numSlotsBehind: 42 });
      }
      const isHitBy = (name: Fault['fault']) => hit.some(({ fault }) => fault === name);
      const old = hit.find(({ fault }) => fault === 'behind');
      return {
        sent: isHitBy('never-lands') ? 'never-lands' : isHitBy('fails-landing') ? 'fails-landing' : 'lands',
        behind: (old && frozen.get(old)) ?? null,
        strikeAfter() {
          if (isHitBy('drop-reply')) throw new LostReply(null);
        },
      };
    },
  };
}

function readFault(config: Config): Fault {
  const fault = choiceOf(config, 'fault', FAULTS, 'refuse');
  if (config.fault === undefined) throw invalid(`Invalid params: fault must be one of ${FAULTS.join(', ')}.`);
  const byDefault = OF_ALL_METHODS.includes(fault) ? null : 'sendTransaction';
  const method = config.method ?? byDefault;
  if (method !== null && typeof method !== 'string')
    throw invalid('Invalid params: method must be a string.');
  const httpStatus = integerOf(config, 'httpStatus', 500, 599);
  if (httpStatus < 400) throw invalid('Invalid params: httpStatus must be 400 to 599.');
  const count = integerOf(config, 'count', 1, MAX_COUNT);
  if (count < 1) throw invalid('Invalid params: count must be at least 1.');
  return {
    fault,
    method,
    count,
    httpStatus,
    delayMs: integerOf(config, 'delayMs', 1_000, MAX_DELAY_MS),
  };
}
