/**
 * `npm run contracts:deploy`: puts the vault and its permit helper on a real chain. Without `--send` nothing is sent: it
 * says what would be, where it would be, and that it would succeed. What was done is written down step by step, so that a
 * deployment that was cut short goes on where it stopped and never makes a second vault.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  type Abi,
  type Address,
  createPublicClient,
  createWalletClient,
  encodeDeployData,
  encodeFunctionData,
  getContractAddress,
  type Hex,
  http,
  isAddressEqual,
  keccak256,
  parseAbi,
  type Transport,
  type WalletClient,
} from 'viem';
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { ROOT } from './forge.ts';
import { prove, SEED } from './proof.ts';
import { type Chain, checkSetup, NotDeployable, PROTOCOLS, type Setup } from './setup.ts';

const NOBODY: Address = '0x000000000000000000000000000000000000dEaD';
const RECEIPT_TIMEOUT_MS = 120_000;
const POLL_MS = 500;

const SEEDING = parseAbi([
  'function balanceOf(address account) view returns (uint256)',
  'function allowance(address owner, address spender) view returns (uint256)',
  'function approve(address spender, uint256 value) returns (bool)',
  'function seeded() view returns (bool)',
  'function seed() returns (uint256)',
]);

/** One contract of a deployment: what it is made with, and where it is or will be. */
export interface Placed {
  contract: 'FareboxVault' | 'PermitDeposit';
  address: Address;
  /** As its source names them. */
  arguments: unknown;
  /** The same for an explorer that verifies the source: the ABI's encoding. */
  encodedArguments: Hex;
  /** Keccak-256 of the code that must lie there. */
  codeHash: Hex;
  /** Null: not sent yet. */
  transaction: Hex | null;
  /** Null: not in a block, or not read back, yet. */
  block: string | null;
}

export interface Deployment {
  chainId: number;
  deployer: Address;
  /** SHA-256 of the setup: another one is another deployment. */
  setupSha256: string;
  compiler: { version: string; evmVersion: string; optimizerRuns: number };
  contracts: Placed[];
}

interface Artifact {
  abi: Abi;
  bytecode: { object: Hex };
  metadata: {
    compiler: { version: string };
    settings: { evmVersion: string; optimizer: { runs: number } };
  };
}

function artifact(name: string): Artifact {
  return JSON.parse(readFileSync(join(ROOT, `contracts/out/${name}.sol/${name}.json`), 'utf8'));
}

/**
 * Deploys, or says what deploying would do. The contracts must have been compiled.
 *
 * @param given.key the deployer's private key; it pays the gas and keeps no role
 * @param given.recordFile where what was done is written, and read from when it is done again
 * @param given.say takes each line for people
 * @returns what is deployed, or would be
 * @throws NotDeployable when it must not be, or is not what it should be
 */
export async function deploy(given: {
  rpcUrl: string;
  setup: Setup;
  key: Hex;
  send: boolean;
  recordFile: string;
  say(line: string): void;
}): Promise<Deployment> {
  const { rpcUrl, setup, key, send, recordFile, say } = given;
  const account = privateKeyToAccount(key);
  const client = createPublicClient({ chain: base, transport: http(rpcUrl), pollingInterval: POLL_MS });
  const notes = await checkSetup(client, setup);
  const plan = await planOf(client, setup, account.address, earlierIn(recordFile));
  const [vault] = plan.contracts;
  if (vault === undefined) throw new NotDeployable('the record of the deployment names no vault');
  for (const line of [...toldOf(plan, setup), ...notes]) say(line);
  if (vault.transaction === null) {
    const { abi, bytecode } = artifact('FareboxVault');
    await prove(client, setup, { abi, bytecode: bytecode.object, argumentOf });
    say('Proven in a simulation: a deposit, an exit in kind and an exit for USDC through each of the three.');
  }
  if (!send) {
    say(
      'Nothing was sent. With --send it is, and the vault is seeded with 1 USDC of the deployer’s, for ever.',
    );
    return plan;
  }
  const sender = senderOf(client, createWalletClient({ chain: base, transport: http(rpcUrl), account }));
  await mustHoldSeed(client, setup, account.address, vault);
  for (const each of plan.contracts) {
    await make(client, each, setup, plan, { sender, recordFile });
    say(`${each.contract} is at ${each.address}, read back from block ${each.block}.`);
  }
  await seed(client, setup, account.address, vault.address, sender);
  say('The vault is seeded, and takes deposits.');
  return plan;
}

/** Makes a contract, unless it is there, and reads it back. */
async function make(
  client: Chain,
  each: Placed,
  setup: Setup,
  plan: Deployment,
  { sender, recordFile }: { sender: Sender; recordFile: string },
): Promise<void> {
  if (each.block !== null) return;
  if (each.transaction === null)
    await sender.send({ data: dataOf(each), to: null }, (transaction) => {
      // Written down before it is sent: whoever goes on after a crash finds it, and sends no other.
      each.transaction = transaction;
      write(recordFile, plan);
    });
  const receipt = await sender.mined(each.transaction ?? '0x');
  const made = receipt.contractAddress;
  if (receipt.status !== 'success' || !made || !isAddressEqual(made, each.address))
    throw new NotDeployable(`${each.contract}: transaction ${each.transaction} did not make it`);
  await readBack(client, each, setup, plan);
  each.block = String(receipt.blockNumber);
  write(recordFile, plan);
}

type Sender = ReturnType<typeof senderOf>;

function senderOf(client: Chain, wallet: WalletClient<Transport, typeof base, PrivateKeyAccount>) {
  return {
    /** @param about takes the transaction's hash before it is sent */
    async send(
      request: { data: Hex; to: Address | null },
      about: (hash: Hex) => void = () => {},
    ): Promise<Hex> {
      const prepared = await wallet.prepareTransactionRequest(request);
      const serializedTransaction = await wallet.signTransaction(prepared as never);
      const hash = keccak256(serializedTransaction);
      about(hash);
      await wallet.sendRawTransaction({ serializedTransaction });
      return hash;
    },
    mined: (hash: Hex) => client.waitForTransactionReceipt({ hash, timeout: RECEIPT_TIMEOUT_MS }),
  };
}

/** @throws NotDeployable when the deployer could not seed the vault that it makes */
async function mustHoldSeed(client: Chain, { usdc }: Setup, deployer: Address, vault: Placed): Promise<void> {
  if (vault.block !== null && (await isSeeded(client, vault.address))) return;
  const held = await client.readContract({
    address: usdc,
    abi: SEEDING,
    functionName: 'balanceOf',
    args: [deployer],
  });
  if (held < SEED)
    throw new NotDeployable(`${deployer} holds ${held} units of USDC, and the vault’s seed takes ${SEED}`);
}

function isSeeded(client: Chain, vault: Address): Promise<boolean> {
  return client.readContract({ address: vault, abi: SEEDING, functionName: 'seeded' });
}

/** Puts the seed in, unless it is: by whoever else, or by this key before it was cut short. */
async function seed(
  client: Chain,
  { usdc }: Setup,
  from: Address,
  vault: Address,
  sender: Sender,
): Promise<void> {
  if (await isSeeded(client, vault)) return;
  const token = { address: usdc, abi: SEEDING } as const;
  if ((await client.readContract({ ...token, functionName: 'allowance', args: [from, vault] })) < SEED) {
    const data = encodeFunctionData({ abi: SEEDING, functionName: 'approve', args: [vault, SEED] });
    await sender.mined(await sender.send({ data, to: usdc }));
  }
  const data = encodeFunctionData({ abi: SEEDING, functionName: 'seed' });
  await sender.mined(await sender.send({ data, to: vault }));
  if (!(await isSeeded(client, vault)))
    throw new NotDeployable('the vault is made, and its seed was not taken');
}

/** What is to be made, by which transactions, and what must lie there then. An earlier deployment is gone on with. */
async function planOf(
  client: Chain,
  setup: Setup,
  deployer: Address,
  earlier: Deployment | null,
): Promise<Deployment> {
  const setupSha256 = createHash('sha256').update(JSON.stringify(setup)).digest('hex');
  if (earlier !== null) {
    if (earlier.setupSha256 !== setupSha256 || !isAddressEqual(earlier.deployer, deployer))
      throw new NotDeployable('an earlier deployment is written down with another setup or another key');
    return withLost(client, earlier);
  }
  const nonce = await client.getTransactionCount({ address: deployer, blockTag: 'pending' });
  const addressAt = (offset: number) => getContractAddress({ from: deployer, nonce: BigInt(nonce + offset) });
  const vault = await simulated(client, deployer, 'FareboxVault', addressAt(0), [argumentOf(setup)]);
  const helper = await simulated(client, deployer, 'PermitDeposit', addressAt(1), [vault.placed.address], {
    address: vault.placed.address,
    code: vault.code,
  });
  const { compiler, settings } = artifact('FareboxVault').metadata;
  return {
    chainId: base.id,
    deployer,
    setupSha256,
    compiler: {
      version: compiler.version,
      evmVersion: settings.evmVersion,
      optimizerRuns: settings.optimizer.runs,
    },
    contracts: [vault.placed, helper.placed],
  };
}

/** What was signed and may never have been sent: it is forgotten when its nonce is still free, and waited for otherwise. */
async function withLost(client: Chain, earlier: Deployment): Promise<Deployment> {
  for (const each of earlier.contracts) {
    if (each.transaction === null || each.block !== null) continue;
    const known = await client.getTransaction({ hash: each.transaction }).catch(() => null);
    if (known !== null) continue;
    const nonce = await client.getTransactionCount({ address: earlier.deployer, blockTag: 'pending' });
    if (!isAddressEqual(getContractAddress({ from: earlier.deployer, nonce: BigInt(nonce) }), each.address))
      throw new NotDeployable(
        `${each.contract}: its transaction is unknown, and the key has been used for something else. Deploy with another key and another record`,
      );
    each.transaction = null;
  }
  return earlier;
}

/** Makes a contract without making it. @throws NotDeployable when it cannot be made */
async function simulated(
  client: Chain,
  deployer: Address,
  contract: Placed['contract'],
  address: Address,
  args: readonly unknown[],
  known?: { address: Address; code: Hex },
): Promise<{ placed: Placed; code: Hex }> {
  const { abi, bytecode } = artifact(contract);
  const data = encodeDeployData({ abi, bytecode: bytecode.object, args });
  const stateOverride = known === undefined ? [] : [known];
  // Its maker is of no account to it, and the deployer's next address is the one that the vault is thought to be at.
  const { data: code } = await client
    .call({ account: known === undefined ? deployer : NOBODY, data, stateOverride })
    .catch((cause: unknown) => {
      throw new NotDeployable(
        `${contract} cannot be made: ${cause instanceof Error ? cause.message : cause}`,
        {
          cause,
        },
      );
    });
  if (code === undefined) throw new NotDeployable(`${contract} cannot be made: it has no code`);
  return {
    code,
    placed: {
      contract,
      address,
      arguments: args[0],
      encodedArguments: `0x${data.slice(bytecode.object.length)}`,
      codeHash: keccak256(code),
      transaction: null,
      block: null,
    },
  };
}

/** @throws NotDeployable when what lies there is not what was meant */
async function readBack(client: Chain, placed: Placed, setup: Setup, plan: Deployment): Promise<void> {
  const { contract, address } = placed;
  const { abi } = artifact(contract);
  const wanted: [string, unknown][] =
    contract === 'PermitDeposit'
      ? [
          ['vault', plan.contracts[0]?.address],
          ['usdc', setup.usdc],
        ]
      : [
          ...['name', 'symbol', 'aavePool', 'comet', 'metaMorpho'].map((name): [string, unknown] => [
            name,
            setup[name as keyof Setup],
          ]),
          ...Object.entries(setup.roles),
          ['asset', setup.usdc],
          ['active', PROTOCOLS.indexOf(setup.active)],
          ['fees', setup.fees],
          ['moveLimits', setup.limits],
          ['depositsPaused', false],
        ];
  const code = await client.getCode({ address });
  if (code === undefined || keccak256(code) !== placed.codeHash)
    throw new NotDeployable(`${contract} at ${address} has other code than it was simulated with`);
  for (const [functionName, value] of wanted) {
    const found = await client.readContract({ address, abi, functionName });
    if (!isDeepStrictEqual(found, value))
      throw new NotDeployable(`${contract} at ${address}: ${functionName} is ${JSON.stringify(found)}`);
  }
}

function argumentOf(setup: Setup) {
  const { chainId: _, vouchedFor: __, active, ...rest } = setup;
  return { ...rest, active: PROTOCOLS.indexOf(active) };
}

function dataOf({ contract, encodedArguments }: Placed): Hex {
  return `${artifact(contract).bytecode.object}${encodedArguments.slice(2)}`;
}

function toldOf({ deployer, compiler, contracts }: Deployment, setup: Setup): string[] {
  return [
    `Chain ${base.id}, from ${deployer}; compiler ${compiler.version}, ${compiler.optimizerRuns} runs, ${compiler.evmVersion}`,
    ...contracts.flatMap(({ contract, address, encodedArguments, block }) => [
      `${contract} ${block === null ? 'will be' : 'is'} at ${address}`,
      `  made with ${JSON.stringify(contract === 'FareboxVault' ? argumentOf(setup) : { vault: contracts[0]?.address })}`,
      `  encoded ${encodedArguments}`,
    ]),
  ];
}

function earlierIn(file: string): Deployment | null {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
}

/** The old record or the new one, whole. */
function write(file: string, deployment: Deployment): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(deployment, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}
