/**
 * USDC.e at its real address. Only the chain's own factory makes TIP-20 tokens, and it chooses their addresses. So it
 * makes a token with the right name, and that token's storage is copied to the right address.
 */
import { gunzipSync } from 'node:zlib';
import { type Address, type Hex, keccak256, toHex } from 'viem';
import { Actions } from 'viem/tempo';
import { BUILDERS } from '../chain/accounts.ts';
import { PATH_USD, USDC_E } from './addresses.ts';
import { by, type TempoNode } from './node.ts';

const { deployer, faucet } = BUILDERS;
const REFUNDS_MICROS = 10_000_000_000n;
const FAUCET_MICROS = 1_000_000_000_000n;
const FEE_POOL_MICROS = 1_000_000_000n;

/** What is needed of a state that the node dumped. */
interface Dump {
  accounts: Readonly<Record<string, { code: Hex; storage: Readonly<Record<string, Hex>> }>>;
}

/** Makes the token, with the deployer as every authority, and fills the faucet. */
export async function buildUsdcE(node: TempoNode): Promise<void> {
  const { token: twin } = await Actions.token.createSync(node, {
    ...by(deployer),
    // As on Tempo.
    name: 'Bridged USDC (Stargate)',
    symbol: 'USDC.e',
    currency: 'USD',
    quoteToken: PATH_USD,
    admin: deployer.address,
    salt: keccak256(toHex('farebox sandbox USDC.e')),
  });
  await copyAccount(node, twin, USDC_E);
  await Actions.token.grantRolesSync(node, {
    ...by(deployer),
    token: USDC_E,
    roles: ['issuer'],
    to: deployer.address,
  });
  await mint(node, faucet.address, FAUCET_MICROS);
  // A fee paid in USDC.e is exchanged here into the validator's token.
  await Actions.amm.mintSync(node, {
    ...by(deployer),
    userTokenAddress: USDC_E,
    validatorTokenAddress: PATH_USD,
    validatorTokenAmount: FEE_POOL_MICROS,
    to: deployer.address,
  });
}

/** Gives the one who pays refunds what it works with, where it has nothing yet: USDC.e, and what the node wants to see beside it. */
export async function stockRefunds(node: TempoNode, refunds: Address): Promise<void> {
  const { amount } = await Actions.token.getBalance(node, { token: USDC_E, account: refunds });
  if (amount > 0n) return;
  await mint(node, refunds, REFUNDS_MICROS);
  await Actions.token.transferSync(node, {
    ...by(faucet),
    token: PATH_USD,
    to: refunds,
    amount: FEE_POOL_MICROS,
  });
}

async function mint(node: TempoNode, to: Address, amount: bigint): Promise<void> {
  await Actions.token.mintSync(node, { ...by(deployer), token: USDC_E, to, amount });
}

async function copyAccount(node: TempoNode, from: Address, to: Address): Promise<void> {
  const packed = Buffer.from((await node.dumpState()).slice(2), 'hex');
  const dump: Dump = JSON.parse(gunzipSync(packed).toString());
  const original = dump.accounts[from.toLowerCase()];
  if (original === undefined) throw new Error(`the node's state lacks the account ${from}`);
  await node.setCode({ address: to, bytecode: original.code });
  for (const [slot, value] of Object.entries(original.storage)) {
    await node.setStorageAt({ address: to, index: toHex(BigInt(slot), { size: 32 }), value });
  }
}
