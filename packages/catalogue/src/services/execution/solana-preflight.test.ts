import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import {
  AccountRole,
  type Address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  createNoopSigner,
  createTransactionMessage,
  generateKeyPairSigner,
  getAddressEncoder,
  getBase64EncodedWireTransaction,
  getProgramDerivedAddress,
  type Instruction,
  type KeyPairSigner,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit';
import {
  AuthorityType,
  findAssociatedTokenPda,
  getApproveCheckedInstruction,
  getCloseAccountInstruction,
  getRevokeInstruction,
  getSetAuthorityInstruction,
  getTransferCheckedInstruction,
} from '@solana-program/token';
import { SEED } from '../../../../sandbox/src/accounts.fixture.ts';
import { SYSTEM_PROGRAM, TOKEN_PROGRAM, USDC_MINT } from '../../../../sandbox/src/solana/programs.ts';
import { type SolanaChain, startSolana } from '../../../../sandbox/src/solana/solana.ts';
import { mintIn, TOKEN_2022_PROGRAM } from '../../preflight/solana-accounts.ts';
import { readInstruction } from '../../preflight/solana-instructions.ts';
import { solana } from '../../upstreams/adapters/solana.ts';
import { connectUpstream, type UpstreamConnection } from '../../upstreams/http.ts';
import { runContext } from '../run-context.fixture.ts';
import { listsOf, party } from '../shared/screening/lists.fixture.ts';
import { buy } from '../shared/wallet/wallet-context.fixture.ts';
import preflight from './transaction-preflight.ts';

interface Told {
  verdict: string;
  signer: string;
  findings: { pattern: string; severity: string }[];
  approvals: { spender: string; amountRaw: string | null; by: string }[];
  balanceChanges: { address: string; token: string | null; changeRaw: string }[] | null;
  simulation: { success: boolean } | null;
  coverage: { check: string; done: boolean }[];
}

let node: SolanaChain;
let connection: UpstreamConnection;
let api: ReturnType<(typeof solana)['open']>;
let owner: KeyPairSigner;
let other: KeyPairSigner;
let blockhash: Blockhash;
before(async () => {
  node = await startSolana({ seed: SEED, stateDir: null });
  const config = { baseUrl: node.url };
  connection = connectUpstream(solana, config, { userAgent: 'test', acceptSandbox: true, nowMs: Date.now });
  api = solana.open(connection.http);
  owner = await generateKeyPairSigner();
  other = await generateKeyPairSigner();
  for (const { address } of [owner, other])
    await ask('sandbox_fund', address, { lamports: 1_000_000_000, usdcUnits: 5_000_000 });
  const latest = (await ask('getLatestBlockhash')) as { value: { blockhash: Blockhash } };
  blockhash = latest.value.blockhash;
});
after(async () => {
  await connection.close();
  await node.stop();
});

async function ask(method: string, ...params: unknown[]): Promise<unknown> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  const response = await fetch(node.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  return ((await response.json()) as { result: unknown }).result;
}

const accountOf = async (wallet: Address) =>
  (await findAssociatedTokenPda({ owner: wallet, mint: USDC_MINT, tokenProgram: TOKEN_PROGRAM }))[0];

function wireOf(instructions: readonly Instruction[]): string {
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (each) => setTransactionMessageFeePayer(owner.address, each),
    (each) => setTransactionMessageLifetimeUsingBlockhash({ blockhash, lastValidBlockHeight: 1_000n }, each),
    (each) => appendTransactionMessageInstructions(instructions, each),
  );
  return getBase64EncodedWireTransaction(compileTransaction(message));
}

async function check(
  instructions: readonly Instruction[],
  lists = listsOf({ 'ofac-sdn': [] }),
): Promise<Told> {
  const context = { ...runContext({ solana: api }), lists };
  const { fields } = await buy(preflight, { chain: 'solana', transaction: wireOf(instructions) }, context);
  assert.equal(preflight.output.safeParse(fields).error, undefined);
  return fields as unknown as Told;
}

const patterns = ({ findings }: Told) => findings.map(({ pattern }) => pattern);
const mine = () => createNoopSigner(owner.address);

async function sending(amount: bigint): Promise<Instruction> {
  return getTransferCheckedInstruction({
    source: await accountOf(owner.address),
    mint: USDC_MINT,
    destination: await accountOf(other.address),
    authority: mine(),
    amount,
    decimals: 6,
  });
}

async function approving(delegate: Address): Promise<Instruction> {
  const source = await accountOf(owner.address);
  return getApproveCheckedInstruction({
    source,
    mint: USDC_MINT,
    delegate,
    owner: mine(),
    amount: 5n,
    decimals: 6,
  });
}

async function givingTo(
  newAuthority: Address,
  authorityType = AuthorityType.AccountOwner,
): Promise<Instruction> {
  return getSetAuthorityInstruction({
    owned: await accountOf(owner.address),
    owner: mine(),
    authorityType,
    newAuthority,
  });
}

async function closing(destination: Address): Promise<Instruction> {
  return getCloseAccountInstruction({ account: await accountOf(owner.address), destination, owner: mine() });
}

/** An instruction of the system program, by hand. */
function system(
  kind: number,
  accounts: readonly Address[],
  more: Uint8Array = new Uint8Array(),
): Instruction {
  const data = new Uint8Array(4 + more.length);
  new DataView(data.buffer).setUint32(0, kind, true);
  data.set(more, 4);
  const roles = accounts.map((address) => ({
    address,
    role: address === owner.address ? AccountRole.WRITABLE_SIGNER : AccountRole.WRITABLE,
  }));
  return { programAddress: SYSTEM_PROGRAM, accounts: roles, data };
}

const lamports = (amount: bigint) => {
  const data = new Uint8Array(8);
  new DataView(data.buffer).setBigUint64(0, amount, true);
  return data;
};

describe('transaction preflight on solana', () => {
  it('calls a payment safe, and tells what it moves', async () => {
    const told = await check([await sending(1_000n)]);
    assert.deepEqual([told.verdict, told.signer, told.simulation?.success], ['safe', owner.address, true]);
    const moved = told.balanceChanges?.filter(({ token }) => token === USDC_MINT);
    assert.deepEqual(
      moved?.map(({ address, changeRaw }) => [address, changeRaw]).sort(),
      [
        [owner.address, '-1000'],
        [other.address, '1000'],
      ].sort(),
    );
    assert.equal(
      (await check([system(2, [owner.address, other.address], lamports(5_000_000n))])).verdict,
      'safe',
    );
  });

  it('tells each malicious instruction from its benign twin', async () => {
    const [program] = await getProgramDerivedAddress({ programAddress: TOKEN_PROGRAM, seeds: ['x'] });
    const cases: [string, Instruction, string, string][] = [
      ['approval to a key', await approving(other.address), 'danger', 'approval_to_account'],
      ['approval to a program', await approving(program), 'caution', 'approval'],
      ['owner to another', await givingTo(other.address), 'danger', 'authority_change'],
      [
        'close authority to oneself',
        await givingTo(owner.address, AuthorityType.CloseAccount),
        'safe',
        'authority_change',
      ],
      ['account closed to another', await closing(other.address), 'danger', 'account_closed_to_other'],
      [
        'wallet assigned',
        system(1, [owner.address], new Uint8Array(getAddressEncoder().encode(TOKEN_PROGRAM))),
        'danger',
        'account_assigned',
      ],
      [
        'nonce to another',
        system(7, [other.address, owner.address], new Uint8Array(getAddressEncoder().encode(other.address))),
        'danger',
        'nonce_authority',
      ],
      [
        'all of the coin',
        system(2, [owner.address, other.address], lamports(999_000_000n)),
        'caution',
        'empties_balance',
      ],
      ['all of a token', await sending(5_000_000n), 'caution', 'empties_balance'],
      [
        'unknown program',
        { programAddress: other.address, data: new Uint8Array([1]) },
        'unknown',
        'unknown_program',
      ],
    ];
    const wrong: string[] = [];
    for (const [name, instruction, verdict, pattern] of cases) {
      const told = await check([instruction]);
      if (told.verdict !== verdict || !patterns(told).includes(pattern))
        wrong.push(`${name}: ${told.verdict}, ${patterns(told).join(' ')}`);
    }
    assert.deepEqual(wrong, []);
    const source = await accountOf(owner.address);
    assert.equal((await check([getRevokeInstruction({ source, owner: mine() })])).verdict, 'safe');
  });

  it('finds a durable nonce, and what hides in a lookup table', () => {
    const at = 'instruction.0';
    const nonce = {
      at,
      program: SYSTEM_PROGRAM,
      accounts: [other.address],
      data: new Uint8Array([4, 0, 0, 0]),
    };
    assert.deepEqual(readInstruction(nonce, owner.address).findings[0]?.pattern, 'durable_nonce');
    const hidden = readInstruction({ ...nonce, accounts: [null] }, owner.address);
    assert.deepEqual(
      hidden.findings.map(({ pattern, severity }) => [pattern, severity]),
      [['hidden_accounts', 'unknown']],
    );
    const short = readInstruction(
      { ...nonce, program: TOKEN_PROGRAM, data: new Uint8Array([4]) },
      owner.address,
    );
    assert.deepEqual(
      short.findings.map(({ severity }) => severity),
      ['unknown'],
    );
  });

  it('reads the powers over a token of Token-2022', () => {
    const key = new Uint8Array(getAddressEncoder().encode(other.address));
    const extension = (kind: number, content: Uint8Array) =>
      Buffer.concat([Buffer.from([kind, 0, content.length, 0]), content]);
    const mint = (...extensions: Buffer[]) => {
      const head = new Uint8Array(166);
      head[44] = 6;
      head[165] = 1;
      const data = new Uint8Array(Buffer.concat([head, ...extensions]));
      return mintIn({ lamports: 1n, owner: TOKEN_2022_PROGRAM, data })?.extensions;
    };
    assert.deepEqual(mint(extension(12, key), extension(14, Buffer.concat([key, key]))), [
      'permanent_delegate',
      'transfer_hook',
    ]);
    assert.deepEqual(mint(extension(12, new Uint8Array(32)), extension(18, new Uint8Array(64))), []);
    assert.deepEqual(mint(Buffer.from([12, 0, 255, 255])), [], 'a length beyond the account');
  });

  it('is unknown where it would fail, and tells who is listed', async () => {
    const failing = await check([await sending(9_000_000n)]);
    assert.deepEqual(
      [failing.verdict, failing.balanceChanges, failing.simulation?.success],
      ['unknown', null, false],
    );
    const listed = listsOf({
      'ofac-sdn': [party('1', 'X', { addresses: [{ asset: 'SOL', address: other.address }] })],
    });
    const paying = system(2, [owner.address, other.address], lamports(5_000_000n));
    assert.ok(patterns(await check([paying], listed)).includes('sanctioned'));
    assert.equal((await check([paying], listsOf({}))).verdict, 'caution');
  });

  it('refuses what is no transaction, by the name of the field', async () => {
    const context = runContext({ solana: api });
    for (const transaction of ['AAAA', Buffer.alloc(1_300).toString('base64')]) {
      const asked = buy(preflight, { chain: 'solana', transaction }, context);
      await assert.rejects(asked, { status: 400, field: 'transaction' });
    }
  });
});
