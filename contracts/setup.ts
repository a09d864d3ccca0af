/**
 * What a vault is to be made with, as a file of JSON has it, and what it must be: everything in it but the roles and the fees holds
 * for ever. Whatever is unusual, and may be meant, is refused until the setup names it in `vouchedFor`.
 */
import { readFileSync } from 'node:fs';
import {
  type Address,
  getAddress,
  type Hex,
  isAddress,
  isAddressEqual,
  type PublicClient,
  parseAbi,
  type Transport,
  zeroAddress,
} from 'viem';
import { base } from 'viem/chains';

export type Chain = PublicClient<Transport, typeof base>;
export const PROTOCOLS = ['aave', 'compound', 'morpho'] as const;
/** By protocol, in their order: where the setup has its address. */
const LENDERS = ['aavePool', 'comet', 'metaMorpho'] as const;
const ROLES = ['owner', 'keeper', 'guardian', 'feeRecipient'] as const;

export interface Setup {
  chainId: number;
  name: string;
  symbol: string;
  usdc: Address;
  aavePool: Address;
  comet: Address;
  metaMorpho: Address;
  active: (typeof PROTOCOLS)[number];
  roles: Record<(typeof ROLES)[number], Address>;
  fees: { entryBps: number; performanceBps: number };
  limits: { maxShareBps: number; maxOfLiquidityBps: number; cooldownSeconds: number };
  /** Names of lenders that are not published here, of roles that are contracts, and of limits beyond what is usual. */
  vouchedFor?: readonly string[];
}

/** What is wrong with the setup, the chain or an earlier deployment; nothing was sent after it was found. */
export class NotDeployable extends Error {}

/** Where USDC is, and what its permits are signed for: on another chain, or of another token, it would be another value. */
const USDC = {
  address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  domainSeparator: '0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f',
} as const;
const MORPHO_BLUE: Address = '0xBBBBBbbBBb9cC5e90e3b3Af64bdAF62C37EEFFCb';
/** The address without a key that has the seed's shares. */
const SEED_HOLDER: Address = '0x000000000000000000000000000000000000dEaD';
/** Lenders of USDC on Base: Aave's address book 4.68.1, deployments/base/usdc of Comet, and MetaMorpho vaults by name. */
const PUBLISHED: Readonly<Record<(typeof LENDERS)[number], Readonly<Record<Address, string>>>> = {
  aavePool: { '0xA238Dd80C259a72e81d7e4664a9801593F98d1c5': 'Aave v3' },
  comet: { '0xb125E6687d4313864e53df431d5425969c15Eb2F': 'Compound v3, cUSDCv3' },
  metaMorpho: {
    '0xbeeF010f9cb27031ad51e3333f9aF9C6B1228183': 'Steakhouse USDC',
    '0x7BfA7C4f149E7415b73bdeDfe609237e29CBF34A': 'Spark USDC',
    '0xeE8F4eC5672F09119b96Ab6fB59C27E1b7e44b61': 'Gauntlet USDC Prime',
    '0xc1256Ae5FF1cf2719D4937adb3bbCCab2E00A2Ca': 'Moonwell Flagship USDC',
  },
};

const BPS = 10_000;
/** What a setup that does not say gets. */
const USUAL_LIMITS = { maxShareBps: 6_000, maxOfLiquidityBps: 5_000, cooldownSeconds: 21_600 };
/** From, to: above the second, up to the third, only where the setup vouches for it. */
const RANGES: Readonly<Record<keyof Setup['limits'], readonly [number, number, number]>> = {
  maxShareBps: [1, 6_000, BPS],
  maxOfLiquidityBps: [100, 5_000, BPS],
  cooldownSeconds: [3_600, 7 * 86_400, 30 * 86_400],
};
/** The contract's own caps. */
const MOST_FEES = { entryBps: 100, performanceBps: 2_500 };
/** An account that lets a contract act for it, and has a key still (EIP-7702). */
const DELEGATED = '0xef0100';
/** Addresses up to here are for precompiled contracts (EIP-1352). */
const LAST_RESERVED = 0xffffn;

const ABI = parseAbi([
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function getReserveAToken(address asset) view returns (address)',
  'function baseToken() view returns (address)',
  'function asset() view returns (address)',
  'function MORPHO() view returns (address)',
  'function owner() view returns (address)',
  'function curator() view returns (address)',
  'function guardian() view returns (address)',
  'function timelock() view returns (uint256)',
  'function fee() view returns (uint96)',
]);

/** A setup from a file, with the limits that it leaves out. @throws NotDeployable when it is none */
export function readSetup(file: string): Setup {
  try {
    const setup: Setup = JSON.parse(readFileSync(file, 'utf8'));
    const of = (part: Record<string, Address>, names: readonly string[]) => {
      for (const name of names) part[name] = getAddress(part[name] ?? '0x');
    };
    of(setup as never, ['usdc', ...LENDERS]);
    of(setup.roles, ROLES);
    setup.limits = { ...USUAL_LIMITS, ...setup.limits };
    return setup;
  } catch (cause) {
    throw new NotDeployable(`${file} is no setup: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  }
}

/**
 * Holds a setup against what is published, against the chain, and against what is sane.
 *
 * @returns what people should read before they send it: whom the vault trusts beside its own roles
 * @throws NotDeployable on another chain, with another USDC, over protocols that do not lend it, or with what nobody vouches for
 */
export async function checkSetup(client: Chain, setup: Setup): Promise<string[]> {
  const { usdc, roles, active } = setup;
  for (const [name, value] of Object.entries({ usdc, ...lendersOf(setup), ...roles }))
    if (!isAddress(value) || value === zeroAddress)
      throw new NotDeployable(`${name} is not an address with its checksum`);
  if (!PROTOCOLS.includes(active)) throw new NotDeployable(`active is none of ${PROTOCOLS.join(', ')}`);
  checkFigures(setup);
  const chainId = await client.getChainId();
  if (chainId !== base.id || setup.chainId !== base.id)
    throw new NotDeployable(
      `the vault is for chain ${base.id}; the node serves ${chainId}, and the setup names ${setup.chainId}`,
    );
  await checkUsdc(client, usdc);
  await checkLenders(client, setup);
  return [...(await checkRoles(client, setup)), ...(await trustedByMorpho(client, setup))];
}

function lendersOf({ aavePool, comet, metaMorpho }: Setup) {
  return { aavePool, comet, metaMorpho };
}

function mustVouch({ vouchedFor = [] }: Setup, name: string, problem: string): void {
  if (vouchedFor.includes(name)) return;
  throw new NotDeployable(`${problem}. If that is meant, add "${name}" to vouchedFor of the setup`);
}

/** @throws NotDeployable for fees that the contract refuses, and limits that would keep funds idle or let too much go at once */
function checkFigures(setup: Setup): void {
  const { fees, limits } = setup;
  for (const [name, most] of Object.entries(MOST_FEES)) {
    const value = fees[name as keyof typeof fees];
    if (!Number.isInteger(value) || value < 0 || value > most)
      throw new NotDeployable(`fees.${name} must be a whole number from 0 to ${most}`);
  }
  for (const [name, [least, usual, most]] of Object.entries(RANGES)) {
    const value = limits[name as keyof typeof limits];
    if (!Number.isInteger(value) || value < least || value > most)
      throw new NotDeployable(`limits.${name} must be a whole number from ${least} to ${most}`);
    if (value > usual) mustVouch(setup, name, `limits.${name} is above ${usual}`);
  }
  if (PROTOCOLS.length * limits.maxShareBps < BPS)
    throw new NotDeployable(
      `limits.maxShareBps of the ${PROTOCOLS.length} protocols sum to ${(PROTOCOLS.length * limits.maxShareBps) / 100} %: the rest would lie idle for ever`,
    );
}

const asked = async <Result>(what: string, ask: Promise<Result>): Promise<Result> =>
  ask.catch((cause: unknown) => {
    throw new NotDeployable(`${what} does not answer as it should`, { cause });
  });

async function checkUsdc(client: Chain, usdc: Address): Promise<void> {
  if (!isAddressEqual(usdc, USDC.address)) throw new NotDeployable(`${usdc} is not USDC on chain ${base.id}`);
  const token = { address: usdc, abi: ABI } as const;
  const domain = await asked('USDC', client.readContract({ ...token, functionName: 'DOMAIN_SEPARATOR' }));
  const decimals = await asked('USDC', client.readContract({ ...token, functionName: 'decimals' }));
  if (domain !== USDC.domainSeparator || decimals !== 6)
    throw new NotDeployable(`what lies at ${usdc} is not USDC`);
}

async function checkLenders(client: Chain, setup: Setup): Promise<void> {
  const { usdc, aavePool, comet, metaMorpho } = setup;
  const ask = { abi: ABI } as const;
  const aToken = await asked(
    'aavePool',
    client.readContract({ ...ask, address: aavePool, functionName: 'getReserveAToken', args: [usdc] }),
  );
  const lent = await asked(
    'comet',
    client.readContract({ ...ask, address: comet, functionName: 'baseToken' }),
  );
  const asset = await asked(
    'metaMorpho',
    client.readContract({ ...ask, address: metaMorpho, functionName: 'asset' }),
  );
  for (const [name, found] of [
    ['comet', lent],
    ['metaMorpho', asset],
  ] as const)
    if (!isAddressEqual(found, usdc)) throw new NotDeployable(`${name} does not lend USDC`);
  if (aToken === zeroAddress) throw new NotDeployable('aavePool does not lend USDC');
  const morpho = await client
    .readContract({ ...ask, address: metaMorpho, functionName: 'MORPHO' })
    .catch(() => zeroAddress);
  if (!isAddressEqual(morpho, MORPHO_BLUE))
    throw new NotDeployable(
      'metaMorpho is no MetaMorpho: it does not lend through Morpho Blue. A Morpho Vault V2 is none: its limits are always told as 0, so that nothing could ever be taken out of it for USDC',
    );
  for (const name of LENDERS) {
    const published = Object.keys(PUBLISHED[name]);
    if (!published.some((each) => isAddressEqual(each as Address, setup[name])))
      mustVouch(
        setup,
        name,
        `${name} ${setup[name]} is none of those that are published for Base: ${published.join(', ')}`,
      );
  }
}

/** @throws NotDeployable where a role could never act, or one key would be two that should watch each other */
async function checkRoles(client: Chain, setup: Setup): Promise<string[]> {
  const { roles, usdc } = setup;
  const told: string[] = [];
  const taken = [usdc, SEED_HOLDER, ...Object.values(lendersOf(setup))];
  for (const name of ROLES) {
    const address = roles[name];
    if (BigInt(address) <= LAST_RESERVED || taken.some((each) => isAddressEqual(each, address)))
      throw new NotDeployable(`${name} ${address} is nobody who could act`);
    const code: Hex = (await client.getCode({ address })) ?? '0x';
    if (code === '0x' || code.startsWith(DELEGATED)) continue;
    if (name === 'keeper') throw new NotDeployable('keeper is a contract, and the keeper signs with a key');
    mustVouch(setup, name, `${name} ${address} is a contract, and must be one that can call the vault`);
    told.push(`${name} is a contract: ${address}`);
  }
  for (const name of ['owner', 'guardian'] as const)
    if (isAddressEqual(roles.keeper, roles[name]))
      throw new NotDeployable(
        `keeper and ${name} are one: the keeper's key is on a server, and whoever steals it would be both`,
      );
  return told;
}

/** Who can change what the MetaMorpho lends to, and how soon. */
async function trustedByMorpho(client: Chain, { metaMorpho }: Setup): Promise<string[]> {
  const its = { address: metaMorpho, abi: ABI } as const;
  const read = (functionName: 'owner' | 'curator' | 'guardian' | 'timelock' | 'fee') =>
    asked('metaMorpho', client.readContract({ ...its, functionName }) as Promise<unknown>);
  const [owner, curator, guardian, timelock, fee] = await Promise.all(
    (['owner', 'curator', 'guardian', 'timelock', 'fee'] as const).map(read),
  );
  const name = PUBLISHED.metaMorpho[metaMorpho] ?? 'nobody published it';
  return [
    `MetaMorpho ${metaMorpho} (${name}): owner ${owner}, curator ${curator}, guardian ${guardian}`,
    `  it takes new markets and higher caps ${Number(timelock) / 3_600} h after they were announced, and keeps ${Number(fee) / 1e16} % of its interest`,
  ];
}
