/** Reads the logs of a simulated call: who gets what, and who may take what. */
import { type Address, getAddress, type Hex, hexToBigInt, isAddressEqual, size, sliceHex } from 'viem';
import type { Act } from '../../../preflight/act.ts';
import { PERMIT2 } from '../../../preflight/known-contracts.ts';

export interface SimulatedLog {
  address: Address;
  topics: readonly Hex[];
  data: Hex;
}

/** Under this address nodes report what moves of the chain's own coin. */
const NATIVE = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee';
const TOPICS = {
  transfer: '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
  approval: '0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925',
  approvalForAll: '0x17307eab39ab6107e8899845ad3d59bd9653f200f220920489ca2b5937696c31',
  transferSingle: '0xc3d58168c5ae7397731d063d5bbf3d657854427343f4c083240f7aacaa2d0f62',
  deposit: '0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c',
  withdrawal: '0x7fcf532c15f0a6db0bd6d0e038bea71d30d808c7d98cb3bf7268a95bf5081b65',
  permit2Approval: '0xda9fa7c1b00402c17d0161b249b1ab8bbec047c5a52207b9c112deffd817036b',
  permit2Permit: '0xc6a377bfc4eb120024a8ac08eef205be16b817020812c73223e81d1bdb9708ec',
} as const;
const MOST_LOGS = 500;

/** @returns with `isCut` where there were more logs than are read */
export function actsOf(
  logs: readonly SimulatedLog[],
  wrappedNative: Address,
): { acts: Act[]; isCut: boolean } {
  const acts = logs.slice(0, MOST_LOGS).flatMap((log) => {
    try {
      return actOf(log, wrappedNative);
    } catch {
      // What does not fit its topic is no event of that name.
      return [];
    }
  });
  return { acts, isCut: logs.length > MOST_LOGS };
}

const party = (topic: Hex | undefined): Address => {
  if (topic === undefined) throw new TypeError('no topic');
  return getAddress(sliceHex(topic, 12));
};

function moved(token: Address | null, from: Address, to: Address, amount: bigint): Act {
  return {
    kind: 'transfer',
    at: 'simulation',
    by: 'simulation',
    token,
    from,
    to,
    amount,
    mover: from,
    expiresAtS: null,
  };
}

function actOf({ address, topics, data }: SimulatedLog, wrappedNative: Address): Act[] {
  const [topic, first, second, third] = topics;
  const at = 'simulation';
  const wrapped = isAddressEqual(address, wrappedNative);
  switch (topic) {
    case TOPICS.transfer:
      if (address.toLowerCase() === NATIVE)
        return [moved(null, party(first), party(second), hexToBigInt(data))];
      return [moved(address, party(first), party(second), third === undefined ? amountIn(data) : 1n)];
    case TOPICS.transferSingle:
      return [moved(address, party(second), party(third), hexToBigInt(sliceHex(data, 32, 64)))];
    case TOPICS.approval: {
      const amount = third === undefined ? amountIn(data) : 1n;
      const tokenId = third === undefined ? null : hexToBigInt(third);
      return [granted(address, party(first), party(second), amount, tokenId, null)];
    }
    case TOPICS.approvalForAll:
      if (hexToBigInt(data) === 0n) return [];
      return [
        {
          kind: 'operator',
          at,
          by: 'simulation',
          owner: party(first),
          collection: address,
          operator: party(second),
        },
      ];
    case TOPICS.permit2Approval:
    case TOPICS.permit2Permit:
      if (!isAddressEqual(address, PERMIT2)) return [];
      return [
        granted(
          party(second),
          party(first),
          party(third),
          hexToBigInt(sliceHex(data, 0, 32)),
          null,
          hexToBigInt(sliceHex(data, 32, 64)),
        ),
      ];
    case TOPICS.deposit:
      return wrapped ? [moved(address, address, party(first), amountIn(data))] : [];
    case TOPICS.withdrawal:
      return wrapped ? [moved(address, party(first), address, amountIn(data))] : [];
    default:
      return [];
  }
}

function amountIn(data: Hex): bigint {
  if (size(data) < 32) throw new TypeError('no amount');
  return hexToBigInt(sliceHex(data, 0, 32));
}

function granted(
  token: Address,
  owner: Address,
  spender: Address,
  amount: bigint,
  tokenId: bigint | null,
  expiresAtS: bigint | null,
): Act {
  return {
    kind: 'approval',
    at: 'simulation',
    by: 'simulation',
    owner,
    token,
    spender,
    amount,
    tokenId,
    expiresAtS,
  };
}
