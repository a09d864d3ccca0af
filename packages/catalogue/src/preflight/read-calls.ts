/** Reads call data as far as its functions are known, through calls that wrap others. */
import {
  type AbiFunction,
  type Address,
  decodeFunctionData,
  type Hex,
  parseAbiItem,
  size,
  sliceHex,
  toFunctionSelector,
} from 'viem';
import type { Act, ReadCall, Reading } from './act.ts';
import { knownContract } from './known-contracts.ts';
import { type Call, type Meaning, READERS } from './known-functions.ts';

const MOST_DEPTH = 8;
const MOST_CALLS = 300;
const SHORTEST_CALL_BYTES = 4;

interface Known {
  abi: AbiFunction;
  signature: string;
  read: (typeof READERS)[string];
}

/** One selector may be of several functions, so each is tried. */
const BY_SELECTOR: ReadonlyMap<Hex, readonly Known[]> = Object.entries(READERS).reduce(
  (map, [written, read]) => {
    const abi = parseAbiItem(written) as AbiFunction;
    const selector = toFunctionSelector(abi);
    const types = abi.inputs.map(({ type }) => type).join(',');
    return map.set(selector, [
      ...(map.get(selector) ?? []),
      { abi, signature: `${abi.name}(${types})`, read },
    ]);
  },
  new Map<Hex, Known[]>(),
);

/**
 * Reads a call and those in it, at most 300 and eight deep.
 *
 * @param isDelegated the code of `to` runs as that of `from`
 */
export function readCall(call: Call, isDelegated = false): Reading {
  const reading: Reading = { acts: [], calls: [], ours: [call.from], isCut: false };
  const waiting: { call: Call; depth: number; isDelegated: boolean }[] = [{ call, depth: 0, isDelegated }];
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    if (reading.calls.length >= MOST_CALLS || next.depth > MOST_DEPTH) {
      reading.isCut = true;
      break;
    }
    const { call: current, depth } = next;
    const { meaning, called } = meaningOf(current, next.isDelegated);
    reading.calls.push(readAs(current, called));
    reading.acts.push(...paid(current, called), ...(meaning.acts ?? []));
    if (meaning.ours !== undefined) reading.ours.push(meaning.ours);
    if (meaning.isCut === true) reading.isCut = true;
    for (const { isDelegated: delegated = false, ...inner } of meaning.inner ?? []) {
      waiting.push({ call: inner, depth: depth + 1, isDelegated: delegated });
    }
  }
  return reading;
}

function readAs({ at, from, to, value, data }: Call, called: string | null): ReadCall {
  const selector = size(data) >= SHORTEST_CALL_BYTES ? sliceHex(data, 0, SHORTEST_CALL_BYTES) : null;
  return { at, from, to, value, selector, called };
}

/** The coin that a call sends along. What goes into a known function is told by that. */
function paid({ at, from, to, value, data }: Call, called: string | null): Act[] {
  if (value === 0n || (called !== null && data !== '0x')) return [];
  return [
    { kind: 'transfer', at, by: 'call', token: null, from, to, amount: value, mover: from, expiresAtS: null },
  ];
}

function meaningOf(call: Call, isDelegated: boolean): { meaning: Meaning; called: string | null } {
  const { at, from, to, value, data } = call;
  if (isDelegated && knownContract(to)?.role !== 'library') {
    return {
      meaning: { acts: [{ kind: 'delegatecall', at, by: 'call', actor: from, target: to }] },
      called: null,
    };
  }
  if (data === '0x') return { meaning: {}, called: null };
  const selector = size(data) >= SHORTEST_CALL_BYTES ? sliceHex(data, 0, SHORTEST_CALL_BYTES) : null;
  for (const known of selector === null ? [] : (BY_SELECTOR.get(selector) ?? [])) {
    const meaning = read(known, call);
    if (meaning !== null) return { meaning, called: known.signature };
  }
  return {
    meaning: { acts: [{ kind: 'unread', at, by: 'call', contract: to, selector, value }] },
    called: null,
  };
}

/** Null where the data does not fit the function. */
function read({ abi, read: reader }: Known, call: Call): Meaning | null {
  try {
    const { args = [] } = decodeFunctionData({ abi: [abi], data: call.data });
    return reader(args as readonly unknown[], call);
  } catch {
    return null;
  }
}

/** Everybody who takes part: who is called, who gets, who may take. */
export function partiesOf(acts: readonly Act[], calls: readonly ReadCall[]): Address[] {
  const of = (act: Act): (Address | null)[] => {
    switch (act.kind) {
      case 'approval':
        return [act.spender, act.token];
      case 'operator':
        return [act.operator, act.collection];
      case 'transfer':
        return [act.to, act.from, act.token];
      case 'delegatecall':
        return [act.target];
      case 'upgrade':
        return [act.implementation, act.contract];
      case 'owner':
      case 'control':
        return [act.to, act.contract];
      case 'account-delegation':
        return [act.delegate];
      case 'order':
        return [act.maker, ...act.gives.map(({ token }) => token), ...act.gets.map(({ token }) => token)];
      case 'revocation':
        return [act.token];
      case 'bait':
      case 'unread':
      case 'harmless':
        return [act.contract];
    }
  };
  const all = [...acts.flatMap(of), ...calls.map(({ to }) => to)].filter((each) => each !== null);
  return [...new Map(all.map((address) => [address.toLowerCase(), address])).values()];
}
