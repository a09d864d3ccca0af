/** The chain as its users see it: what must hold so that code and signatures made for Base work here unchanged. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import {
  type Address,
  createPublicClient,
  createWalletClient,
  custom,
  domainSeparator,
  getAddress,
  type Hex,
  http,
  keccak256,
  pad,
  parseAbi,
  parseEther,
  parseEventLogs,
  parseSignature,
  slice,
  toHex,
} from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { isAlive } from '../../../process/src/is-alive.mjs';
import { StartError } from '../../../process/src/start-error.ts';
import { SANDBOX_ACCOUNTS, SEED } from '../accounts.fixture.ts';
import { accountsOf } from './accounts.ts';
import { type EvmChain, startEvmChain } from './chain.ts';
import { compileContracts } from './contracts/compile.ts';
import { transferData } from './eip3009.fixture.ts';
import { fund } from './faucet.ts';
import { ethPriceUsd } from './market-price.ts';
import { connect } from './node.ts';
import { compiledFile, OWN_CONTRACTS } from './own-contracts.ts';
import { runningOn } from './state-files.ts';
import { tradeToMarket } from './uniswap.ts';

const USDC = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';
const USDC_IMPLEMENTATION = '0x2Ce6311ddAE708829bc0784C967b7d77D19FD779';
const WETH = '0x4200000000000000000000000000000000000006';
const REGISTRY = '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432';
const PERMIT2 = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
const TOKEN = parseAbi([
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function symbol() view returns (string)',
  'function ownerOf(uint256) view returns (address)',
  'function balanceOf(address) view returns (uint256)',
  'function transfer(address to, uint256 value) returns (bool)',
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
]);
const IDENTITY = parseAbi([
  'function register(string agentURI) returns (uint256)',
  'function ownerOf(uint256) view returns (address)',
  'function tokenURI(uint256) view returns (string)',
  'function getAgentWallet(uint256) view returns (address)',
  'function setAgentWallet(uint256 agentId, address newWallet, uint256 deadline, bytes signature)',
  'function setMetadata(uint256 agentId, string metadataKey, bytes metadataValue)',
  'function transferFrom(address from, address to, uint256 agentId)',
  'event Registered(uint256 indexed agentId, string agentURI, address indexed owner)',
]);
const ETH = parseEther('0.01');

let folder: string;
let chain: EvmChain;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'farebox-chain-'));
  chain = await startEvmChain({ seed: SEED, stateDir: join(folder, 'kept') });
});
after(async () => {
  await chain.stop();
  rmSync(folder, { recursive: true, force: true });
});

// A client as for the real chain, except for the address.
const reader = (url = chain.url) =>
  createPublicClient({ chain: base, transport: http(url, { retryCount: 0 }), pollingInterval: 10 });
const wallet = (privateKey: Hex) =>
  createWalletClient({ chain: base, transport: http(chain.url), account: privateKeyToAccount(privateKey) });
const usdcOf = (account: Address) =>
  reader().readContract({ address: USDC, abi: TOKEN, functionName: 'balanceOf', args: [account] });

async function mined(hash: Hex) {
  const receipt = await reader().waitForTransactionReceipt({ hash });
  assert.equal(receipt.status, 'success');
  return receipt;
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(10);
}

/** A new wallet with 25 USDC and a little ETH. */
async function funded() {
  const account = privateKeyToAccount(generatePrivateKey());
  const faucet = wallet(SANDBOX_ACCOUNTS.faucet.privateKey);
  await mined(
    await faucet.writeContract({
      address: USDC,
      abi: TOKEN,
      functionName: 'transfer',
      args: [account.address, 25_000_000n],
    }),
  );
  await mined(await faucet.sendTransaction({ to: account.address, value: ETH }));
  return account;
}

test('the chain is Base to a wallet: code, domains, funds and the clock', async () => {
  const client = reader();
  assert.equal(await client.getChainId(), 8453);
  // A known value: the domain separator of USDC on Base.
  const usdcDomain = await client.readContract({
    address: USDC,
    abi: TOKEN,
    functionName: 'DOMAIN_SEPARATOR',
  });
  assert.equal(usdcDomain, '0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f');
  const permitDomain = await client.readContract({
    address: PERMIT2,
    abi: TOKEN,
    functionName: 'DOMAIN_SEPARATOR',
  });
  assert.equal(
    permitDomain,
    domainSeparator({ domain: { name: 'Permit2', chainId: 8453, verifyingContract: PERMIT2 } }),
  );
  const [symbol, nothing] = await client.multicall({
    contracts: [
      { address: USDC, abi: TOKEN, functionName: 'symbol' },
      { address: USDC, abi: TOKEN, functionName: 'ownerOf', args: [0n] },
    ],
  });
  assert.equal(symbol.result, 'USDC');
  assert.equal(nothing.status, 'failure');

  const { deployer, facilitator, relayer, refunds, recipient, faucet, registrar } = SANDBOX_ACCOUNTS;
  // No recipient of a payment may be one of the accounts whose keys are printed in every toolkit's manual.
  const printed = await client.request({ method: 'eth_accounts' } as never);
  for (const { address } of [facilitator, relayer, refunds, recipient, registrar])
    assert(!(printed as string[]).includes(address.toLowerCase()), address);
  assert((printed as string[]).includes(faucet.address.toLowerCase()));
  const others = accountsOf(randomBytes(32).toString('hex'));
  assert.notEqual(others.recipient.address, recipient.address);
  assert.equal(privateKeyToAccount(registrar.privateKey).address, registrar.address);
  assert.equal(await usdcOf(refunds.address), 10_000_000_000n);
  assert.equal(await usdcOf(faucet.address), 1_000_000_000_000n);
  for (const { address } of [deployer, facilitator, relayer, refunds, faucet, registrar])
    assert((await client.getBalance({ address })) >= parseEther('1000'), address);
  assert.equal(await client.getBalance({ address: recipient.address }), 0n);

  const earliest = Math.floor(Date.now() / 1_000);
  const { blockNumber } = await mined(
    await wallet(relayer.privateKey).sendTransaction({ to: relayer.address }),
  );
  const { timestamp } = await client.getBlock({ blockNumber });
  assert(timestamp >= earliest && timestamp <= Math.ceil(Date.now() / 1_000), 'x402 deadlines use real time');

  // Worked by hand: (68 x 16 + 4 + 16) gas x (16 x 2269 x 1 gwei + 1055762 wei) / 16,000,000.
  const l1Fee = await client.readContract({
    address: '0x420000000000000000000000000000000000000F',
    abi: parseAbi(['function getL1Fee(bytes) view returns (uint256)']),
    functionName: 'getL1Fee',
    args: ['0x00ff'],
  });
  assert.equal(l1Fee, 2_514_052_073n);
});

test('a wallet that overlooks the block of its transaction learns of it with the next one, soon', async () => {
  const direct = http(chain.url)({ chain: base });
  const { relayer } = SANDBOX_ACCOUNTS;
  const hash = await wallet(relayer.privateKey).sendTransaction({ to: relayer.address });
  const { blockNumber } = await mined(hash);
  // A node whose answers come in an unlucky order: the transaction is mined while viem searches the previous block for a
  // replacement.
  let isPending = true;
  let announced = () => {};
  const overlooked = new Promise<void>((resolve) => {
    announced = resolve;
  });
  const slow = custom({
    async request({ method, params }: { method: string; params?: unknown }) {
      const real: unknown = await direct.request({ method, params });
      if (method === 'eth_getBlockByNumber' && isPending) {
        isPending = false;
        await overlooked;
      }
      if (method === 'eth_blockNumber') {
        if (isPending) return toHex(blockNumber - 1n);
        // The answer held back above reaches viem only after this one.
        setTimeout(announced, 100);
        return real;
      }
      if (method === 'eth_getTransactionReceipt' && isPending) return null;
      return method === 'eth_getTransactionByHash' && isPending
        ? Object.assign({}, real, { blockNumber: null })
        : real;
    },
  });
  const client = createPublicClient({ chain: base, transport: slow, pollingInterval: 10 });
  const startedAtMs = performance.now();
  assert.equal((await client.waitForTransactionReceipt({ hash })).blockNumber, blockNumber);
  assert(performance.now() - startedAtMs < 20_000, 'it waited for a block of an idle chain');
});

test('no block comes while mining is switched off', async () => {
  const client = reader();
  const { relayer } = SANDBOX_ACCOUNTS;
  const newest = () => client.getBlockNumber({ cacheTime: 0 });
  await mined(await wallet(relayer.privateKey).sendTransaction({ to: relayer.address }));
  const first = await newest();
  await until(async () => (await newest()) > first);
  const node = connect(chain.url);
  await node.setAutomine(false);
  const hash = await wallet(relayer.privateKey).sendTransaction({ to: relayer.address });
  await assert.rejects(client.waitForTransactionReceipt({ hash, timeout: 4_000 }), /Timed out/);
  await node.setAutomine(true);
  await mined(hash);
});

test('two processes that give at once both give, though both may be told the same nonce', async () => {
  // A second copy of the module stands for another process: neither copy knows of the other's gifts.
  const copy: string = './faucet.ts?of-another-process';
  const { fund: fundToo } = (await import(copy)) as { fund: typeof fund };
  const gift = { usdcMicros: 1_000_000n, ethWei: 1n };
  const gifts = Array.from({ length: 20 }, () =>
    [fund, fundToo].map((give) => give(chain.url, privateKeyToAccount(generatePrivateKey()).address, gift)),
  );
  for (const holdings of await Promise.all(gifts.flat())) assert.deepEqual(holdings, gift);
});

test('a transaction that the node wrongly put aside is mined, with those behind it', async () => {
  const node = connect(chain.url);
  const sender = privateKeyToAccount(generatePrivateKey());
  await node.setBalance({ address: sender.address, value: ETH });
  for (const nonce of [1, 2]) {
    const raw = { chainId: 8453, nonce, to: sender.address, gas: 21_000n, maxFeePerGas: 10_000_000_000n };
    await node.sendRawTransaction({ serializedTransaction: await sender.signTransaction(raw) });
  }
  // From now on the two transactions are next, but the node does not notice. The same happens when transactions arrive
  // while a block is being made.
  await node.setNonce({ address: sender.address, nonce: 1 });
  await until(async () => (await node.getTransactionCount({ address: sender.address })) === 3);
});

test('an EIP-3009 authorization moves USDC once', async () => {
  const payer = await funded();
  const { relayer, recipient } = SANDBOX_ACCOUNTS;
  const now = BigInt(Math.floor(Date.now() / 1_000));
  const authorization = {
    from: payer.address,
    to: recipient.address,
    value: 250_000n,
    validAfter: now - 60n,
    validBefore: now + 60n,
    nonce: toHex(7, { size: 32 }),
  };
  const { v, r, s } = parseSignature(await payer.signTypedData(transferData(authorization)));
  assert(v !== undefined);
  const { from, to, value, validAfter, validBefore, nonce } = authorization;
  const call = {
    address: USDC,
    abi: TOKEN,
    functionName: 'transferWithAuthorization',
    args: [from, to, value, validAfter, validBefore, nonce, Number(v), r, s],
  } as const;
  const before = await usdcOf(to);
  await mined(await wallet(relayer.privateKey).writeContract(call));
  assert.equal(await usdcOf(payer.address), 24_750_000n);
  assert.equal(await usdcOf(to), before + 250_000n);
  await assert.rejects(wallet(relayer.privateKey).writeContract(call), /authorization is used or canceled/);
});

/** What 1 WETH brings in USD, according to the quoter contract that wallets ask. */
async function quotedUsd(fee: number): Promise<number> {
  const { result } = await reader().simulateContract({
    address: '0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a',
    abi: parseAbi([
      'struct Query { address tokenIn; address tokenOut; uint256 amountIn; uint24 fee; uint160 sqrtPriceLimitX96; }',
      'function quoteExactInputSingle(Query query) returns (uint256, uint160, uint32, uint256)',
    ]),
    functionName: 'quoteExactInputSingle',
    args: [{ tokenIn: WETH, tokenOut: USDC, amountIn: parseEther('1'), fee, sqrtPriceLimitX96: 0n }],
  });
  return Number(result[0]) / 1e6;
}

/** How far a pool's quote is from the market's price, as a fraction of it. */
async function awayFromMarket(fee: number): Promise<number> {
  return Math.abs((await quotedUsd(fee)) / ethPriceUsd(Date.now()) - 1);
}

test('Uniswap has its pools where Base has them, and quotes the price of the market', async () => {
  const pools = {
    500: '0xd0b53D9277642d899DF5C87A3966A349A798F224',
    3000: '0x6c561B446416E1A00E8E93E221854d6eA4171372',
  };
  for (const [fee, pool] of Object.entries(pools)) {
    const found = await reader().readContract({
      address: '0x33128a8fC17869897dcE68Ed026d694621f6FDfD',
      abi: parseAbi(['function getPool(address, address, uint24) view returns (address)']),
      functionName: 'getPool',
      args: [WETH, USDC, Number(fee)],
    });
    assert.equal(found, pool);
    assert((await awayFromMarket(Number(fee))) < 0.01);
  }
});

test('ERC-8004: an identity is registered, names its wallet, and loses it with its owner', async () => {
  const { registrar, relayer } = SANDBOX_ACCOUNTS;
  const owner = wallet(registrar.privateKey);
  const on = { address: REGISTRY, abi: IDENTITY } as const;
  const walletOf = (id: bigint) =>
    reader().readContract({ ...on, functionName: 'getAgentWallet', args: [id] });
  for (const id of [0n, 1n]) {
    const receipt = await mined(
      await owner.writeContract({ ...on, functionName: 'register', args: ['data:,x'] }),
    );
    const [registered] = parseEventLogs({ abi: IDENTITY, logs: receipt.logs });
    assert.deepEqual(registered?.args, { agentId: id, agentURI: 'data:,x', owner: registrar.address });
    assert.equal(registered.topics[0], '0xca52e62c367d81bb2e328eb795f7c7ba24afb478408a26c0e201d155c449bc4a');
    assert.equal(
      await reader().readContract({ ...on, functionName: 'ownerOf', args: [id] }),
      registrar.address,
    );
    assert.equal(await reader().readContract({ ...on, functionName: 'tokenURI', args: [id] }), 'data:,x');
    assert.equal(await walletOf(id), registrar.address);
  }
  await assert.rejects(
    owner.writeContract({ ...on, functionName: 'setMetadata', args: [1n, 'agentWallet', '0x00'] }),
    /reserved key/,
  );

  const agent = privateKeyToAccount(generatePrivateKey());
  const deadline = BigInt(Math.floor(Date.now() / 1_000) + 200);
  const signature = await agent.signTypedData({
    domain: { name: 'ERC8004IdentityRegistry', version: '1', chainId: 8453, verifyingContract: REGISTRY },
    types: {
      AgentWalletSet: [
        { name: 'agentId', type: 'uint256' },
        { name: 'newWallet', type: 'address' },
        { name: 'owner', type: 'address' },
        { name: 'deadline', type: 'uint256' },
      ],
    },
    primaryType: 'AgentWalletSet',
    message: { agentId: 1n, newWallet: agent.address, owner: registrar.address, deadline },
  });
  const appoint = (agentId: bigint, key: Hex) =>
    wallet(key).writeContract({
      ...on,
      functionName: 'setAgentWallet',
      args: [agentId, agent.address, deadline, signature],
    });
  await assert.rejects(appoint(0n, registrar.privateKey), /invalid wallet sig/, 'signed for the other one');
  await assert.rejects(appoint(1n, relayer.privateKey), /Not authorized/);
  await mined(await appoint(1n, registrar.privateKey));
  assert.equal(await walletOf(1n), agent.address);
  await mined(
    await owner.writeContract({
      ...on,
      functionName: 'transferFrom',
      args: [registrar.address, relayer.address, 1n],
    }),
  );
  assert.equal(await walletOf(1n), '0x0000000000000000000000000000000000000000');
});

test('a restart keeps balances, nonces, blocks and logs, and brings the pools back to the market', async () => {
  const user = await funded();
  const faucet = wallet(SANDBOX_ACCOUNTS.faucet.privateKey);
  const hash = await faucet.sendTransaction({ to: user.address });
  const { blockHash, blockNumber } = await mined(hash);
  const state = async () => ({
    usdc: await usdcOf(user.address),
    ethWei: await reader().getBalance({ address: user.address }),
    nonce: await reader().getTransactionCount({ address: SANDBOX_ACCOUNTS.faucet.address }),
    block: (await reader().getTransactionReceipt({ hash })).blockHash,
    transfers: (await reader().getLogs({ address: USDC, fromBlock: 0n, toBlock: blockNumber })).length,
  });
  await tradeToMarket(connect(chain.url), 1.1 * ethPriceUsd(Date.now()));
  assert((await awayFromMarket(3_000)) > 0.05);
  const before = await state();
  assert.equal(before.usdc, 25_000_000n);
  assert.equal(before.block, blockHash);
  await chain.stop();
  chain = await startEvmChain({ seed: SEED, stateDir: join(folder, 'kept') });
  assert.deepEqual(await state(), before);
  for (const fee of [500, 3_000]) assert((await awayFromMarket(fee)) < 0.01);
  await mined(await wallet(SANDBOX_ACCOUNTS.faucet.privateKey).sendTransaction({ to: user.address }));
});

test('a chain of an earlier version has USDC’s implementation moved to where the real chain has it', async () => {
  const user = await funded();
  const node = connect(chain.url);
  const slot = keccak256(toHex('org.zeppelinos.proxy.implementation'));
  const implementationOf = async () => {
    const value = await connect(chain.url).getStorageAt({ address: USDC, slot });
    return getAddress(slice(value ?? assert.fail(), 12));
  };
  assert.equal(await implementationOf(), USDC_IMPLEMENTATION);
  const code = await node.getCode({ address: USDC_IMPLEMENTATION });
  // As it was: at an address that the deployer happened to get.
  const earlier = privateKeyToAccount(generatePrivateKey()).address;
  await node.setCode({ address: earlier, bytecode: code ?? assert.fail() });
  await node.setCode({ address: USDC_IMPLEMENTATION, bytecode: '0x' });
  await node.setStorageAt({ address: USDC, index: slot, value: pad(earlier) });
  assert.equal(await usdcOf(user.address), 25_000_000n);
  await chain.stop();
  chain = await startEvmChain({ seed: SEED, stateDir: join(folder, 'kept') });
  assert.equal(await implementationOf(), USDC_IMPLEMENTATION);
  assert.equal(await usdcOf(user.address), 25_000_000n);
  assert.equal(await usdcOf((await funded()).address), 25_000_000n);
});

/** A process that runs a chain as `npm start` does. */
async function parentOf(stateDir: string): Promise<{ url: string; process: ChildProcess }> {
  const program = `
    import { startEvmChain } from ${JSON.stringify(join(import.meta.dirname, 'chain.ts'))};
    const chain = await startEvmChain({ seed: ${JSON.stringify(SEED)}, stateDir: ${JSON.stringify(stateDir)} });
    chain.died.then((reason) => { console.log('DIED ' + reason); process.exit(3); });
    console.log(chain.url);`;
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', program],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const ended = once(child, 'exit').then(() => assert.fail('it ended before it had a chain'));
  const [line] = await Promise.race([once(child.stdout, 'data'), ended]);
  ended.catch(() => undefined);
  return { url: String(line).trim(), process: child };
}

/** Whether no node answers at this address any more. */
function silent(url: string): Promise<boolean> {
  return reader(url)
    .getChainId()
    .then(
      () => false,
      () => true,
    );
}

test('killed with its parent, the chain ends too and has lost nothing; killed itself, it says so; and no orphan stays', async () => {
  const stateDir = join(folder, 'killed');
  const first = await parentOf(stateDir);
  const { keeperPid } = runningOn(stateDir) ?? assert.fail();
  const faucet = createWalletClient({
    chain: base,
    transport: http(first.url),
    account: privateKeyToAccount(SANDBOX_ACCOUNTS.faucet.privateKey),
  });
  const hash = await faucet.sendTransaction({ to: SANDBOX_ACCOUNTS.relayer.address, value: 1n });
  // A transaction that is not in a block yet may be lost.
  await reader(first.url).waitForTransactionReceipt({ hash });
  first.process.kill('SIGKILL');
  await until(() => !isAlive(keeperPid));
  assert(await silent(first.url), 'no orphan listens');

  const second = await parentOf(stateDir);
  assert.equal((await reader(second.url).getTransactionReceipt({ hash })).status, 'success');
  const printed = once(second.process.stdout ?? assert.fail(), 'data');
  process.kill(runningOn(stateDir)?.keeperPid ?? assert.fail(), 'SIGKILL');
  assert.match(String(await printed), /^DIED its process ended with SIGKILL/);
  await until(() => silent(second.url));

  // When the parent and the keeper are killed at once, their node runs on until the next start on its folder.
  const third = await parentOf(stateDir);
  const { keeperPid: itsKeeper } = runningOn(stateDir) ?? assert.fail();
  for (const pid of [third.process.pid ?? assert.fail(), itsKeeper]) process.kill(pid, 'SIGKILL');
  await until(() => !isAlive(itsKeeper));
  const fourth = await startEvmChain({ seed: SEED, stateDir });
  assert(await silent(third.url));
  await fourth.stop();
});

test('the reason why it cannot start is reported', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const address = taken.address();
  assert(typeof address === 'object' && address !== null);
  await assert.rejects(
    startEvmChain({ seed: SEED, stateDir: null, port: address.port }),
    (error) => error instanceof StartError && /did not start: .*in use/is.test(error.message),
  );
  taken.close();

  const broken = join(folder, 'broken');
  mkdirSync(broken);
  writeFileSync(join(broken, 'state.json.gz'), gzipSync('{"block":'));
  await assert.rejects(
    startEvmChain({ seed: SEED, stateDir: broken }),
    (error) => error instanceof StartError && /did not start: .*parse/is.test(error.message),
  );
});

test('the compiled code beside the contracts matches their sources', () => {
  const compiled = compileContracts();
  assert.deepEqual(compiled.map(({ contract }) => contract).sort(), Object.keys(OWN_CONTRACTS).sort());
  for (const contract of compiled)
    assert.deepEqual(JSON.parse(readFileSync(compiledFile(contract.contract), 'utf8')), contract);
});

test('gifts that are asked for at once all arrive', async () => {
  const wallets = Array.from({ length: 8 }, () => privateKeyToAccount(generatePrivateKey()).address);
  const gift = { usdcMicros: 5n, ethWei: 7n };
  const held = await Promise.all(wallets.map((wallet) => fund(chain.url, wallet, gift)));
  assert.deepEqual(
    held,
    wallets.map(() => gift),
  );
});
