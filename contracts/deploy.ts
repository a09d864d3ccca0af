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
  getAddress,
  getContractAddress,
  type Hex,
  http,
  isAddress,
  isAddressEqual,
  keccak256,
  type PublicClient,
  parseAbi,
  type Transport,
  zeroAddress,
} from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { base } from 'viem/chains';
import { ROOT } from './forge.ts';

/** Where USDC is, and what its permits are signed for: on another chain, or of another token, it would be another value. */
const USDC = {
  address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  domainSeparator: '0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f',
} as const;
const PROTOCOLS = ['aave', 'compound', 'morpho'] as const;
const NOBODY: Address = '0x000000000000000000000000000000000000dEaD';
const RECEIPT_TIMEOUT_MS = 120_000;
const POLL_MS = 500;

const ABI = parseAbi([
  'function symbol() view returns (string)',
  'function decimals() view returns (uint8)',
  'function DOMAIN_SEPARATOR() view returns (bytes32)',
  'function getReserveAToken(address asset) view returns (address)',
  'function baseToken() view returns (address)',
  'function asset() view returns (address)',
]);

type Chain = PublicClient<Transport, typeof base>;

/** What is asked of the vault, as a file of JSON has it. */
export interface Setup {
  chainId: number;
  name: string;
  symbol: string;
  usdc: Address;
  aavePool: Address;
  comet: Address;
  metaMorpho: Address;
  active: (typeof PROTOCOLS)[number];
  roles: { owner: Address; keeper: Address; guardian: Address; feeRecipient: Address };
  fees: { entryBps: number; performanceBps: number };
  limits: { maxShareBps: number; maxOfLiquidityBps: number; cooldownSeconds: number };
}

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

/** What is wrong with the setup, the chain or an earlier deployment; nothing was sent after it was found. */
export class NotDeployable extends Error {}

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
  await check(client, setup);
  const plan = await planOf(client, setup, account.address, earlierIn(recordFile));
  for (const line of toldOf(plan, setup)) say(line);
  if (!send) {
    say('Nothing was sent. With --send it is.');
    return plan;
  }
  const wallet = createWalletClient({ chain: base, transport: http(rpcUrl), account });
  for (const each of plan.contracts) {
    if (each.block !== null) continue;
    if (each.transaction === null) {
      const request = await wallet.prepareTransactionRequest({ data: dataOf(each), to: null });
      const serialized = await wallet.signTransaction(request as never);
      // Written down before it is sent: whoever goes on after a crash finds it, and sends no other.
      each.transaction = keccak256(serialized);
      write(recordFile, plan);
      await wallet.sendRawTransaction({ serializedTransaction: serialized });
    }
    const receipt = await client.waitForTransactionReceipt({
      ...{ hash: each.transaction, timeout: RECEIPT_TIMEOUT_MS },
    });
    const made = receipt.contractAddress;
    if (receipt.status !== 'success' || !made || !isAddressEqual(made, each.address))
      throw new NotDeployable(`${each.contract}: transaction ${each.transaction} did not make it`);
    await readBack(client, each, setup, plan);
    each.block = String(receipt.blockNumber);
    write(recordFile, plan);
    say(`${each.contract} is at ${each.address}, read back from block ${each.block}.`);
  }
  return plan;
}

/** @throws NotDeployable on another chain, with another USDC, or over protocols that do not lend it */
async function check(client: Chain, setup: Setup): Promise<void> {
  const { usdc, aavePool, comet, metaMorpho, roles, active } = setup;
  for (const [name, value] of Object.entries({ usdc, aavePool, comet, metaMorpho, ...roles }))
    if (!isAddress(value) || value === zeroAddress)
      throw new NotDeployable(`${name} is not an address with its checksum`);
  if (!PROTOCOLS.includes(active)) throw new NotDeployable(`active is none of ${PROTOCOLS.join(', ')}`);
  const chainId = await client.getChainId();
  if (chainId !== base.id || setup.chainId !== base.id)
    throw new NotDeployable(
      `the vault is for chain ${base.id}; the node serves ${chainId}, and the setup names ${setup.chainId}`,
    );
  if (!isAddressEqual(usdc, USDC.address)) throw new NotDeployable(`${usdc} is not USDC on chain ${base.id}`);
  const token = { address: usdc, abi: ABI } as const;
  const read = async <Result>(what: string, ask: Promise<Result>): Promise<Result> =>
    ask.catch((cause: unknown) => {
      throw new NotDeployable(`${what} does not answer as it should`, { cause });
    });
  const domain = await read('USDC', client.readContract({ ...token, functionName: 'DOMAIN_SEPARATOR' }));
  const decimals = await read('USDC', client.readContract({ ...token, functionName: 'decimals' }));
  if (domain !== USDC.domainSeparator || decimals !== 6)
    throw new NotDeployable(`what lies at ${usdc} is not USDC`);
  const lent = [
    [
      'aavePool',
      () =>
        client.readContract({ address: aavePool, abi: ABI, functionName: 'getReserveAToken', args: [usdc] }),
    ],
    ['comet', () => client.readContract({ address: comet, abi: ABI, functionName: 'baseToken' })],
    ['metaMorpho', () => client.readContract({ address: metaMorpho, abi: ABI, functionName: 'asset' })],
  ] as const;
  for (const [name, ask] of lent) {
    const found = await read(name, ask());
    if (name === 'aavePool' ? found === zeroAddress : !isAddressEqual(found, usdc))
      throw new NotDeployable(`${name} does not lend USDC`);
  }
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
    ...{ address: vault.placed.address, code: vault.code },
  });
  const { compiler, settings } = artifact('FareboxVault').metadata;
  return {
    ...{ chainId: base.id, deployer, setupSha256 },
    compiler: {
      ...{ version: compiler.version, evmVersion: settings.evmVersion },
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
      ...{ contract, address, arguments: args[0] },
      encodedArguments: `0x${data.slice(bytecode.object.length)}`,
      ...{ codeHash: keccak256(code), transaction: null, block: null },
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
  const { chainId: _, active, ...rest } = setup;
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

/** A setup from a file. @throws NotDeployable when it is none */
export function readSetup(file: string): Setup {
  try {
    const setup: Setup = JSON.parse(readFileSync(file, 'utf8'));
    const of = (part: Record<string, Address>, names: readonly string[]) => {
      for (const name of names) part[name] = getAddress(part[name] ?? '0x');
    };
    of(setup as never, ['usdc', 'aavePool', 'comet', 'metaMorpho']);
    of(setup.roles, ['owner', 'keeper', 'guardian', 'feeRecipient']);
    return setup;
  } catch (cause) {
    throw new NotDeployable(`${file} is no setup: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  }
}
