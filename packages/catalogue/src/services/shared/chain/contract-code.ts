import type { ChainName } from '@farebox/core/words/chain-names';
import { noAnswer, notFound } from '@farebox/core/words/failure';
import { type Address, getAddress, type Hex, keccak256, sliceHex, zeroAddress } from 'viem';
import type { EvmChain } from '../../../upstreams/adapters/evm.ts';

/** The storage slots in which proxies keep their implementation: ERC-1967 and its predecessors. */
const SLOTS = {
  /** keccak256("eip1967.proxy.implementation") − 1 */
  implementation: '0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc',
  /** keccak256("eip1967.proxy.admin") − 1 */
  admin: '0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103',
  /** keccak256("eip1967.proxy.beacon") − 1 */
  beacon: '0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50',
  /** keccak256("PROXIABLE"): ERC-1822. */
  proxiable: '0xc5f16f0fcc639fa48a6947836d9850f504798523bf8c9a3a87d5876cf622bcf7',
  /** keccak256("org.zeppelinos.proxy.implementation") */
  zeppelinOs: '0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3',
} as const satisfies Record<string, Hex>;

/** The whole code of a minimal proxy (ERC-1167): the address stands in the middle. */
const MINIMAL_PROXY = /^0x363d3d373d3d3d363d73([0-9a-f]{40})5af43d82803e903d91602b57fd5bf3/;
/** An account of a person that runs a contract's code (EIP-7702). */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/;
const BEACON_ABI = [
  {
    type: 'function',
    name: 'implementation',
    inputs: [],
    outputs: [{ type: 'address' }],
    stateMutability: 'view',
  },
] as const;

export interface Proxy {
  kind: 'ERC-1967' | 'ERC-1967 beacon' | 'ERC-1822' | 'ERC-1167' | 'zeppelinos';
  implementation: Address;
  /** The address that may change the implementation, if a slot states it. */
  admin: Address | null;
  beacon: Address | null;
}

export interface ContractCode {
  address: Address;
  code: Hex;
  /** keccak256 of the code. */
  codeHash: Hex;
  /** Null when no known slot and no known pattern says that it is one. */
  proxy: Proxy | null;
  /** The code that decides what the contract does: for a proxy, that of its implementation. */
  logic: { address: Address; code: Hex };
}

/**
 * A contract's code at one block and, for a proxy, that of its implementation.
 *
 * @param field the input's name, for the failure
 * @throws notFound when there is no contract; noAnswer for a delegated account, or a proxy without an implementation
 */
export async function readContractCode(
  chain: EvmChain,
  address: Address,
  blockNumber: bigint,
  name: ChainName,
  field = 'contractAddress',
): Promise<ContractCode> {
  const code = await chain.client.getCode({ address, blockNumber });
  if (code === undefined || code === '0x')
    throw notFound(field, `There is no contract at ${address} on ${name}.`);
  if (DELEGATION.test(code.toLowerCase())) {
    throw noAnswer(
      'NOT_A_CONTRACT',
      `${address} is an account that acts through the code at ${getAddress(sliceHex(code, 3))} (EIP-7702). Ask for that address.`,
      field,
    );
  }
  const proxy = await proxyOf(chain, address, code, blockNumber);
  const codeHash = keccak256(code);
  if (proxy === null) return { address, code, codeHash, proxy, logic: { address, code } };
  const behind = await chain.client.getCode({ address: proxy.implementation, blockNumber });
  if (behind === undefined || behind === '0x') {
    throw noAnswer(
      'PROXY_WITHOUT_CODE',
      `${address} is a proxy (${proxy.kind}) to ${proxy.implementation}, where there is no code.`,
      field,
    );
  }
  return { address, code, codeHash, proxy, logic: { address: proxy.implementation, code: behind } };
}

async function proxyOf(
  chain: EvmChain,
  address: Address,
  code: Hex,
  blockNumber: bigint,
): Promise<Proxy | null> {
  const minimal = MINIMAL_PROXY.exec(code.toLowerCase())?.[1];
  if (minimal !== undefined) {
    return { kind: 'ERC-1167', implementation: getAddress(`0x${minimal}`), admin: null, beacon: null };
  }
  const slot = async (name: keyof typeof SLOTS) =>
    addressIn(await chain.client.getStorageAt({ address, slot: SLOTS[name], blockNumber }));
  const [implementation, admin, beacon, proxiable, zeppelinOs] = await Promise.all([
    slot('implementation'),
    slot('admin'),
    slot('beacon'),
    slot('proxiable'),
    slot('zeppelinOs'),
  ]);
  if (implementation !== null) return { kind: 'ERC-1967', implementation, admin, beacon: null };
  if (beacon !== null) {
    const led = await chain.client
      .readContract({ address: beacon, abi: BEACON_ABI, functionName: 'implementation', blockNumber })
      .catch((error: unknown) => {
        if (error instanceof Error && error.name === 'UpstreamUnavailable') throw error;
        return null;
      });
    if (led !== null) return { kind: 'ERC-1967 beacon', implementation: getAddress(led), admin, beacon };
  }
  if (proxiable !== null) return { kind: 'ERC-1822', implementation: proxiable, admin, beacon: null };
  return zeppelinOs === null ? null : { kind: 'zeppelinos', implementation: zeppelinOs, admin, beacon: null };
}

/** The address in a slot; null for an empty slot and for what is no address. */
function addressIn(word: Hex | undefined): Address | null {
  if (word === undefined || !/^0x0{24}[0-9a-f]{40}$/i.test(word)) return null;
  const address = getAddress(sliceHex(word, 12));
  return address === zeroAddress ? null : address;
}
