/** Puts the lending protocols and the vault from their snapshot on a chain, and shifts their times to the chain's time. */
import { type Address, encodeFunctionData, type Hex, keccak256, parseAbi, parseEther, toHex } from 'viem';
import { StartError } from '../../../../process/src/start-error.ts';
import { BUILDERS, type MoneyAccounts } from '../accounts.ts';
import { USDC, WETH } from '../addresses.ts';
import { hasCode, type Node, transact } from '../node.ts';
import { mintUsdc } from '../usdc.ts';
import { readManifest, readSnapshot } from './snapshot.ts';
import { moveStoredTimes } from './stored-times.ts';

const ERC20 = parseAbi([
  'function balanceOf(address account) view returns (uint256)',
  'function transfer(address to, uint256 amount) returns (bool)',
  'function deposit() payable',
  'function approve(address spender, uint256 amount) returns (bool)',
]);
const VAULT = parseAbi([
  'function keeper() view returns (address)',
  'function feeRecipient() view returns (address)',
  'function setKeeper(address keeper)',
  'function setFeeRecipient(address feeRecipient)',
  'function seeded() view returns (bool)',
  'function SEED_ASSETS() view returns (uint256)',
  'function seed() returns (uint256 shares)',
]);
const BATCH = 400;
const BATCH_TIMEOUT_MS = 20_000;
const BUILDER_WEI = parseEther('1000000');
/**
 * Keccak-256 hashes, as in the manifest, of earlier code with the same storage layout as today's code. Where a chain has
 * such code, today's code replaces it and the deposits stay. Whoever changes a contract without changing its storage layout
 * adds the hash of the code before the change. Any other code is refused.
 */
const SAME_STORAGE: readonly Hex[] = [
  // The vault that burned shares before the funds for them had arrived.
  '0x3c693aa90cfaa3aa295e4dfbf77e161cb05568b54dbe78d0ca5b95c65cbc6f60',
  // The double of Comet that did not tell its totals.
  '0x76161a1f84462e9e91aed1c6e780340077554b85bc138b7520465608711d004d',
  // The vault without a seed: what today's code stores beside comes after it.
  '0xd0ed6c31e3cd2ed49308de822133e5f1ef24e91194b18371b49f6c68a4adf7bd',
  // The vault that held a position on after its protocol had rounded off the last of it.
  '0x864765f96ddc9d11cf7ad4cdcc789cc8a7da4705ec7048609406a6a3dc1bca7c',
];

/**
 * Places the contracts if they are not there yet, or brings their code up to date. The vault's code is written last, so
 * that a placement that was cut short is done again.
 *
 * @param accounts the vault gets their `keeper` as keeper and their `recipient` as fee recipient
 * @param sameStorage see `SAME_STORAGE`
 * @throws StartError when the chain holds other contracts than this version's: nothing is changed then
 */
export async function placeLending(
  node: Node,
  accounts: MoneyAccounts,
  sameStorage: readonly Hex[] = SAME_STORAGE,
): Promise<void> {
  const { vault } = readManifest();
  if (await hasCode(node, vault)) await bringCodeUpToDate(node, sameStorage);
  else await place(node);
  const send = (data: Hex) => transact(node, { from: BUILDERS.lender.address, to: vault, data });
  const read = (functionName: 'keeper' | 'feeRecipient') =>
    node.readContract({ address: vault, abi: VAULT, functionName });
  await seedVault(node, vault);
  const { keeper, recipient } = accounts;
  if ((await read('keeper')) !== keeper.address)
    await send(encodeFunctionData({ abi: VAULT, functionName: 'setKeeper', args: [keeper.address] }));
  if ((await read('feeRecipient')) !== recipient.address)
    await send(
      encodeFunctionData({ abi: VAULT, functionName: 'setFeeRecipient', args: [recipient.address] }),
    );
}

/** Puts the seed into a vault that had deposits before there was one: it takes no other until then. */
async function seedVault(node: Node, vault: Address): Promise<void> {
  const its = { address: vault, abi: VAULT } as const;
  if (await node.readContract({ ...its, functionName: 'seeded' })) return;
  const { address: from } = BUILDERS.lender;
  const assets = await node.readContract({ ...its, functionName: 'SEED_ASSETS' });
  await node.setBalance({ address: from, value: BUILDER_WEI });
  await mintUsdc(node, from, assets);
  const approve = encodeFunctionData({ abi: ERC20, functionName: 'approve', args: [vault, assets] });
  await transact(node, { from, to: USDC, data: approve });
  await transact(node, { from, to: vault, data: encodeFunctionData({ abi: VAULT, functionName: 'seed' }) });
}

/**
 * Replaces earlier code that has the same storage layout, and refuses all other code: it may have stored data that today's
 * code would misread.
 *
 * @throws StartError when the chain has such other code
 */
async function bringCodeUpToDate(node: Node, sameStorage: readonly Hex[]): Promise<void> {
  const contracts = await Promise.all(
    Object.entries(readManifest().contracts).map(async ([name, { address, codeHash }]) => ({
      name,
      address,
      codeHash,
      found: keccak256((await node.getCode({ address })) ?? '0x'),
    })),
  );
  const others = contracts.filter(({ codeHash, found }) => found !== codeHash);
  const unknown = others.filter(({ found }) => !sameStorage.includes(found));
  if (unknown.length > 0) {
    throw new StartError(
      `the sandbox chain was built by another version of Farebox, with another ${unknown.map(({ name }) => name).join(', ')}. Start that version, or forget the sandbox's state, keys and money with: npm run sandbox:reset`,
    );
  }
  if (others.length === 0) return;
  const { accounts } = readSnapshot();
  for (const { name, address } of others) {
    const code = accounts[address]?.code;
    if (code === undefined) throw new Error(`the snapshot of the lending protocols has no ${name}`);
    await node.setCode({ address, bytecode: code });
  }
}

async function place(node: Node): Promise<void> {
  const { vault, storedTimes } = readManifest();
  const { accounts, builderNonce, takenAt, usdc, weth } = readSnapshot();
  const { address: builder } = BUILDERS.lender;
  await node.setBalance({ address: builder, value: BUILDER_WEI });
  await fill(node, USDC, usdc.balances, (to, micros) => mintUsdc(node, to, micros));
  await fill(node, WETH, weth.balances, (to, wei) => giveWeth(node, to, wei));

  const requests: StateRequest[] = [];
  const store = (address: string, storage: Readonly<Record<string, Hex>>) => {
    for (const [slot, value] of Object.entries(storage))
      requests.push({ method: 'anvil_setStorageAt', params: [address, slot, value] });
  };
  store(USDC, usdc.allowances);
  store(WETH, weth.allowances);
  const vaultLast = Object.entries(accounts).toSorted(
    ([a], [b]) => Number(a === vault) - Number(b === vault),
  );
  for (const [address, { code, nonce, storage }] of vaultLast) {
    store(address, storage);
    requests.push({ method: 'anvil_setNonce', params: [address, toHex(nonce)] });
    if (address !== vault) requests.push({ method: 'anvil_setCode', params: [address, code] });
  }
  if ((await node.getTransactionCount({ address: builder })) < builderNonce)
    requests.push({ method: 'anvil_setNonce', params: [builder, toHex(builderNonce)] });
  await inBatches(node, requests);
  const { timestamp } = await node.getBlock();
  await moveStoredTimes(node, storedTimes, Number(timestamp) - takenAt);
  const code = accounts[vault]?.code;
  if (code === undefined) throw new Error('the snapshot of the lending protocols has no vault');
  await node.setCode({ address: vault, bytecode: code });
}

/** Gives each account what it lacks of a token. */
async function fill(
  node: Node,
  token: Address,
  balances: Readonly<Record<Address, string>>,
  give: (to: Address, amount: bigint) => Promise<void>,
): Promise<void> {
  for (const [account, amount] of Object.entries(balances) as [Address, string][]) {
    const held = await node.readContract({
      address: token,
      abi: ERC20,
      functionName: 'balanceOf',
      args: [account],
    });
    if (held < BigInt(amount)) await give(account, BigInt(amount) - held);
  }
}

async function giveWeth(node: Node, to: Address, wei: bigint): Promise<void> {
  const { address: from } = BUILDERS.lender;
  const deposit = encodeFunctionData({ abi: ERC20, functionName: 'deposit' });
  await transact(node, { from, to: WETH, data: deposit, value: wei });
  const transfer = encodeFunctionData({ abi: ERC20, functionName: 'transfer', args: [to, wei] });
  await transact(node, { from, to: WETH, data: transfer });
}

interface StateRequest {
  method: 'anvil_setStorageAt' | 'anvil_setCode' | 'anvil_setNonce';
  params: readonly string[];
}

/** Sends hundreds of requests in a few batches. @throws Error with the node's message about the first that it refuses */
async function inBatches(node: Node, requests: readonly StateRequest[]): Promise<void> {
  for (let start = 0; start < requests.length; start += BATCH) {
    const batch = requests
      .slice(start, start + BATCH)
      .map((request, id) => ({ jsonrpc: '2.0', id, ...request }));
    const answer = await fetch(node.transport.url ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(batch),
      signal: AbortSignal.timeout(BATCH_TIMEOUT_MS),
    });
    const replies: { error?: { message: string } }[] = JSON.parse(await answer.text());
    for (const { error } of replies) if (error !== undefined) throw new Error(error.message);
  }
}
