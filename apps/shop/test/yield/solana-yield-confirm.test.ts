/** What `confirm` and the keeper make of every transaction, by what a node says of it over its socket; and what no attacker gets. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Address } from '@solana/kit';
import {
  COLLATERAL_MINT,
  LENDING_PROGRAM,
  LIQUIDITY_VAULT,
  USDC_MINT,
} from '../../../../packages/yield/src/solana/addresses.ts';
import { createClaims } from '../../../../packages/yield/src/solana/claims.ts';
import {
  ownAccountsOf,
  setUnitPrice,
  transferUsdc,
} from '../../../../packages/yield/src/solana/instructions.ts';
import { openNode } from '../../../../packages/yield/src/solana/node.ts';
import {
  depositScript,
  feeScript,
  memoStep,
  mintStep,
  newSignature,
  newWallet,
  type Script,
  type ScriptedNode,
  startScriptedNode,
  withdrawalScript,
} from '../../../../packages/yield/src/solana/scripted-node.fixture.ts';
import { openTestDatabase, type TestDatabase } from '../database.fixture.ts';
import { jsonOf, startTestServer, type TestServer } from '../server.fixture.ts';

const HOUR_MS = 3_600_000;
const ADMIN_TOKEN = 'c1'.repeat(12);
const SINCE_SLOT = 299_999_000;
const [NET, FEE, COLLATERAL] = [995_000_000n, 5_000_000n, 856_110_718n];

let database: TestDatabase;
let node: ScriptedNode;
let servers: TestServer[];
let clockMs = 0;
/** Null: the servers' clock goes. */
let stoppedAtMs: number | null = null;
before(async () => {
  database = await openTestDatabase();
  node = await startScriptedNode(await newWallet());
  servers = await Promise.all(
    [1, 2].map(() =>
      startTestServer({
        pools: database,
        environment: {
          UPSTREAM_SOLANA_BASE_URL: node.url,
          SOLANA_YIELD_TREASURY: node.treasury,
          SOLANA_YIELD_SINCE_SLOT: String(SINCE_SLOT),
          ADMIN_TOKENS: `desk:${ADMIN_TOKEN}`,
        },
        nowMs: () => stoppedAtMs ?? Date.now() + clockMs,
      }),
    ),
  );
});
after(async () => {
  for (const server of servers) await server.close();
  await node.stop();
  await database.close();
});

async function confirm(wallet: string, txSignature: unknown, more: object = {}, replica = 0) {
  const response = await fetch(`${servers[replica]?.url}/api/solana-yield/confirm`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ wallet, txSignature, ...more }),
  });
  return { status: response.status, body: await jsonOf(response) };
}

async function refunds(wallet: string) {
  const response = await fetch(`${servers[0]?.url}/api/solana-yield/fee-refunds/${wallet}`);
  assert.equal(response.status, 200);
  return jsonOf(response);
}

/** What the operator's page says has to be sent by hand, the first page of it. */
async function owedByOperator(): Promise<{ to: string; amount: string; how: string; reason: string }[]> {
  const response = await fetch(`${servers[0]?.url}/admin/api/overview`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  assert.equal(response.status, 200);
  return (await jsonOf(response)).owed;
}

/** A round of the keeper, in which everything is due. */
async function keep(replica = 0, passMs = 600_000): Promise<void> {
  clockMs += passMs;
  const part = servers[replica]?.app.parts.find(({ name }) => name === 'solana-yield');
  for (const name of ['solana-yield-settle', 'solana-yield-keep'])
    await part?.jobs?.find((job) => job.name === name)?.run();
}

const movesOf = async (wallet: string) =>
  database.sql<{ kind: string; usdc: bigint; collateral: bigint }[]>`
    SELECT kind, usdc, collateral FROM solana_yield_moves WHERE wallet = ${wallet} ORDER BY slot`;
const claimOf = async (signature: string, wallet: string) => {
  const [row] = await database.sql<{ state: string; reason: string | null }[]>`
    SELECT state, reason FROM solana_yield_claims WHERE signature = ${signature} AND wallet = ${wallet}`;
  return row;
};
const deposited = async (wallet: Address, more: Partial<Script> = {}) =>
  node.land({ ...(await depositScript(wallet, { usdc: NET, collateral: COLLATERAL })), ...more });

test('a deposit is confirmed with the chain’s amount, whatever the caller says, and stays confirmed', async () => {
  const wallet = await newWallet();
  const signature = await deposited(wallet);
  const first = await confirm(wallet, signature, { amountUsdcRaw: '999000000000' });
  assert.equal(first.status, 200, JSON.stringify(first.body));
  assert.deepEqual(
    [
      first.body.onChainVerified,
      first.body.verificationStatus,
      first.body.depositedRaw,
      first.body.amountMatches,
    ],
    [true, 'confirmed', String(NET), false],
  );
  // Nobody has to ask the chain again.
  node.state.fault = 'cut';
  const again = await confirm(wallet, signature, { amountUsdcRaw: String(NET) }, 1);
  node.state.fault = null;
  assert.deepEqual(
    [again.status, again.body.verificationStatus, again.body.amountMatches],
    [200, 'confirmed', true],
  );
  assert.deepEqual([...(await movesOf(wallet))], [{ kind: 'deposit', usdc: NET, collateral: COLLATERAL }]);
});

test('what is no signature, no wallet or no amount is refused before any node is asked', async () => {
  const wallet = await newWallet();
  const asked = () => [...node.state.asked.values()].reduce((sum, each) => sum + each, 0);
  const { collateral } = ownAccountsOf(wallet);
  const before = asked();
  for (const [field, sent] of [
    ['txSignature', { wallet, txSignature: undefined }],
    ['txSignature', { wallet, txSignature: 'x'.repeat(88) }],
    ['txSignature', { wallet, txSignature: `${newSignature()}\u0000` }],
    ['txSignature', { wallet, txSignature: newSignature().slice(0, -4) }],
    ['txSignature', { wallet, txSignature: '1'.repeat(88) }],
    ['txSignature', { wallet, txSignature: ['1'] }],
    ['wallet', { wallet: undefined, txSignature: newSignature() }],
    ['wallet', { wallet: `${wallet}1111`, txSignature: newSignature() }],
    // Nobody has a key for a token account.
    ['wallet', { wallet: collateral, txSignature: newSignature() }],
    ['amountUsdcRaw', { wallet, txSignature: newSignature(), amountUsdcRaw: '-5' }],
    ['amountUsdcRaw', { wallet, txSignature: newSignature(), amountUsdcRaw: 5.5 }],
  ] as const) {
    const { status, body } = await confirm(sent.wallet as string, sent.txSignature, sent);
    assert.deepEqual([status, body.fields?.[0]?.field], [400, field], JSON.stringify(body));
  }
  assert.equal(asked(), before);
});

/** Each makes a transaction that is no deposit of the wallet's, and says what is answered. */
const REFUSED: Readonly<
  Record<string, readonly [status: number, code: string, make: (wallet: Address) => Promise<Script>]>
> = {
  'that failed': [
    ...([400, 'TRANSACTION_FAILED'] as const),
    async (wallet) => ({
      ...(await depositScript(wallet, { usdc: NET, collateral: COLLATERAL })),
      err: { InstructionError: [3, { Custom: 6090 }] },
    }),
  ],
  'of another wallet': [
    ...([403, 'NOT_A_SIGNER'] as const),
    async () => depositScript(await newWallet(), { usdc: NET, collateral: COLLATERAL }),
  ],
  'of another wallet, which the claimant pays the fee of': [
    ...([403, 'NOT_A_SIGNER'] as const),
    async (wallet) => {
      const other = await newWallet();
      const theirs = await depositScript(other, { usdc: NET, collateral: COLLATERAL });
      return { ...theirs, signers: [wallet, other] };
    },
  ],
  'that pays the fee': [
    ...([400, 'FEE_TRANSACTION'] as const),
    async (wallet) => feeScript(wallet, node.treasuryAccount, FEE),
  ],
  'that pays the fee of another wallet': [
    ...([403, 'NOT_A_SIGNER'] as const),
    async () => feeScript(await newWallet(), node.treasuryAccount, FEE),
  ],
  'from before the portal': [
    ...([400, 'BEFORE_PORTAL'] as const),
    async (wallet) => ({
      ...(await depositScript(wallet, { usdc: NET, collateral: COLLATERAL })),
      slot: SINCE_SLOT - 1,
    }),
  ],
  'that withdraws': [
    ...([400, 'NOT_A_DEPOSIT'] as const),
    async (wallet) =>
      withdrawalScript(wallet, node.treasuryAccount, { usdc: 9n, collateral: 8n, held: 8n, fee: 1n }),
  ],
  'of a program that looks alike': [
    ...([400, 'NOT_A_DEPOSIT'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      const twin = await newWallet();
      return { ...real, steps: real.steps.map((step) => ({ ...step, programAddress: twin })) };
    },
  ],
  'of a program that looks alike, and mints a token of its own': [
    ...([400, 'NOT_A_DEPOSIT'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      const { collateral } = ownAccountsOf(wallet);
      return { ...real, tokens: { ...real.tokens, [collateral]: [await newWallet(), 0n, COLLATERAL] } };
    },
  ],
  'into another reserve': [
    ...([400, 'OTHER_RESERVE'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      const other = await newWallet();
      return {
        ...real,
        steps: real.steps.map((step) => ({
          ...step,
          accounts: step.accounts?.map((each, index) => (index === 1 ? { address: other } : each)) ?? [],
        })),
      };
    },
  ],
  'whose collateral goes to the account of somebody else': [
    ...([400, 'OTHER_ACCOUNT'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      const { collateral } = ownAccountsOf(await newWallet());
      return {
        ...real,
        steps: real.steps.map((step) => ({
          ...step,
          accounts: step.accounts?.map((each, index) => (index === 8 ? { address: collateral } : each)) ?? [],
        })),
      };
    },
  ],
  'in which another program calls the lending program': [
    ...([400, 'CALLED_BY_PROGRAM'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      const wrapper = { programAddress: await newWallet(), accounts: [], data: [1] };
      return { ...real, steps: [wrapper], inner: { 0: real.steps } };
    },
  ],
  'with a deposit, and another one that a program calls': [
    ...([400, 'SEVERAL_AT_ONCE'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      const wrapper = { programAddress: await newWallet(), accounts: [], data: [1] };
      return { ...real, steps: [...real.steps, wrapper], inner: { ...real.inner, 1: real.steps } };
    },
  ],
  'with two deposits': [
    ...([400, 'SEVERAL_AT_ONCE'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      return { ...real, steps: [...real.steps, ...real.steps] };
    },
  ],
  'that deposits and takes it out again': [
    ...([400, 'SEVERAL_AT_ONCE'] as const),
    async (wallet) => {
      const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
      const back = await withdrawalScript(wallet, node.treasuryAccount, {
        usdc: NET,
        collateral: COLLATERAL,
        held: COLLATERAL,
        fee: 1n,
      });
      return { ...real, steps: [...real.steps, ...back.steps.slice(0, 1)] };
    },
  ],
  'that names the lending program and moves USDC to its vault by itself': [
    ...([400, 'NOT_A_DEPOSIT'] as const),
    async (wallet) => {
      const { usdc, collateral } = ownAccountsOf(wallet);
      return {
        signers: [wallet],
        steps: [
          transferUsdc({ owner: wallet, from: usdc, to: LIQUIDITY_VAULT, amountRaw: NET }),
          { programAddress: LENDING_PROGRAM, accounts: [], data: [2, 218, 138, 235, 79, 201, 25, 102] },
        ],
        tokens: {
          [collateral]: [COLLATERAL_MINT, 0n, COLLATERAL],
          [LIQUIDITY_VAULT]: [USDC_MINT, 0n, NET],
        },
      };
    },
  ],
};

for (const [what, [status, code, make]] of Object.entries(REFUSED))
  test(`a transaction ${what} is refused, and credits nobody`, async () => {
    const wallet = await newWallet();
    const signature = node.land(await make(wallet));
    const answer = await confirm(wallet, signature, { amountUsdcRaw: String(NET) });
    assert.deepEqual([answer.status, answer.body.error, answer.body.txSignature], [status, code, signature]);
    assert.equal(answer.body.onChainVerified, false);
    if (code === 'TRANSACTION_FAILED')
      assert.deepEqual(answer.body.onChainError, { InstructionError: [3, { Custom: 6090 }] });
    assert.deepEqual([...(await movesOf(wallet)).filter(({ kind }) => kind === 'deposit')], []);
    // Nor by the keeper, whom the claim may reach while the node is silent.
    node.state.fault = 'cut';
    const pending = await confirm(wallet, signature);
    node.state.fault = null;
    if (pending.body.verificationStatus !== 'pending_verification') return;
    await keep();
    assert.deepEqual({ ...(await claimOf(signature, wallet)) }, { state: 'refused', reason: code });
    assert.deepEqual([...(await movesOf(wallet)).filter(({ kind }) => kind === 'deposit')], []);
  });

/** Each is a deposit, with something beside it that changes nothing. */
const CREDITED: Readonly<Record<string, (real: Script, wallet: Address) => Promise<Script>>> = {
  'with a wallet’s own instructions before and after it': async (real) => ({
    ...real,
    steps: [setUnitPrice(5n), memoStep('mine'), ...real.steps, memoStep('guard')],
    inner: { 2: real.inner?.[0] ?? [] },
  }),
  'behind a refresh of the reserve': async (real) => ({
    ...real,
    steps: [
      { programAddress: LENDING_PROGRAM, accounts: [], data: [2, 218, 138, 235, 79, 201, 25, 102] },
      ...real.steps,
    ],
    inner: { 1: real.inner?.[0] ?? [] },
  }),
  'whose accounts come from a lookup table': async (real, wallet) => ({
    ...real,
    fromTable: [ownAccountsOf(wallet).collateral, LIQUIDITY_VAULT],
  }),
  'whose fees another signer pays': async (real) => ({
    ...real,
    signers: [await newWallet(), ...real.signers],
  }),
  'beside which somebody gives USDC to the vault': async (real) => ({
    ...real,
    tokens: { ...real.tokens, [LIQUIDITY_VAULT]: [USDC_MINT, 0n, NET + 77_000_000n] },
  }),
  'beside which the wallet gets collateral from elsewhere': async (real, wallet) => ({
    ...real,
    tokens: {
      ...real.tokens,
      [ownAccountsOf(wallet).collateral]: [COLLATERAL_MINT, 0n, 9n * COLLATERAL],
    },
  }),
  'that a node shows without what programs called': async (real) => ({ ...real, inner: {} }),
};

for (const [what, change] of Object.entries(CREDITED))
  test(`a deposit ${what} is credited as what it is`, async () => {
    const wallet = await newWallet();
    const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
    const answer = await confirm(wallet, node.land(await change(real, wallet)));
    assert.equal(answer.body.verificationStatus, 'confirmed', JSON.stringify(answer.body));
    assert.deepEqual([...(await movesOf(wallet))], [{ kind: 'deposit', usdc: NET, collateral: COLLATERAL }]);
  });

test('collateral that is sent away in the same transaction takes its cost with it', async () => {
  const wallet = await newWallet();
  const { collateral } = ownAccountsOf(wallet);
  const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
  const half = COLLATERAL / 2n;
  await confirm(
    wallet,
    node.land({
      ...real,
      inner: { 0: [mintStep(collateral, COLLATERAL)] },
      tokens: { ...real.tokens, [collateral]: [COLLATERAL_MINT, 0n, half] },
    }),
  );
  const { createMoves } = await import('../../../../packages/yield/src/solana/moves.ts');
  const basis = await createMoves(database.sql, Date.now).costBasis(wallet, half);
  assert.deepEqual(basis, { collateral: half, usdc: NET / 2n });
});

test('while the node’s answers mean nothing a deposit is pending, and the keeper confirms it', async () => {
  const wallet = await newWallet();
  const signature = await deposited(wallet);
  node.state.fault = 'garbage';
  const pending = await confirm(wallet, signature);
  assert.equal(pending.status, 200, JSON.stringify(pending.body));
  assert.deepEqual(
    [pending.body.onChainVerified, pending.body.verificationStatus],
    [false, 'pending_verification'],
  );
  // A day of silence is no verdict.
  await keep(0, 24 * HOUR_MS);
  assert.equal((await claimOf(signature, wallet))?.state, 'pending');
  node.state.fault = null;
  assert.deepEqual([...(await movesOf(wallet))], []);
  await keep(1);
  assert.equal((await claimOf(signature, wallet))?.state, 'confirmed');
  assert.equal((await movesOf(wallet)).length, 1);
  assert.equal((await confirm(wallet, signature)).body.verificationStatus, 'confirmed');
});

test('a transaction that nobody knows is pending while its blockhash may live in the chain’s time, then given up with the reason', async () => {
  const wallet = await newWallet();
  const signature = newSignature();
  // The chain's clock is the node's: it stands at the start of the claim.
  const waiting = await confirm(wallet, signature);
  assert.equal(waiting.body.verificationStatus, 'pending_verification');
  await keep(0, HOUR_MS + 60_000);
  assert.equal((await claimOf(signature, wallet))?.state, 'pending', 'the node has stood still since');
  const behind = node.state.slot;
  node.state.slot += Math.ceil((Date.now() + clockMs - 1_700_000_000_000) / 400);
  await keep(0, 11 * 60_000);
  node.state.slot = behind;
  assert.deepEqual({ ...(await claimOf(signature, wallet)) }, { state: 'given_up', reason: 'NOT_SEEN' });
  // It lands after all, and is claimed again.
  node.land({ ...(await depositScript(wallet, { usdc: NET, collateral: COLLATERAL })), signature });
  assert.equal((await confirm(wallet, signature)).body.verificationStatus, 'confirmed');
});

test('somebody who claims another’s pending deposit gets nothing, and keeps it from nobody', async () => {
  const [wallet, thief] = [await newWallet(), await newWallet()];
  const signature = await deposited(wallet);
  node.state.fault = 'cut';
  for (const each of [thief, wallet]) assert.equal((await confirm(each, signature)).status, 200);
  node.state.fault = null;
  await keep();
  assert.deepEqual({ ...(await claimOf(signature, thief)) }, { state: 'refused', reason: 'NOT_A_SIGNER' });
  assert.equal((await claimOf(signature, wallet))?.state, 'confirmed');
  assert.deepEqual([(await movesOf(thief)).length, (await movesOf(wallet)).length], [0, 1]);
  assert.equal((await confirm(thief, signature)).status, 403);
});

test('confirmed twenty times at once, on two replicas and by the keeper too, it is credited once', async () => {
  const wallet = await newWallet();
  const signature = await deposited(wallet);
  const letGo = node.hold();
  const answers = Array.from({ length: 20 }, (_, index) => confirm(wallet, signature, {}, index % 2));
  letGo();
  for (const { status, body } of await Promise.all(answers))
    assert.deepEqual([status, body.verificationStatus], [200, 'confirmed']);
  await Promise.all([keep(0), keep(1)]);
  assert.equal((await movesOf(wallet)).length, 1);
});

test('two keepers at once settle each claim, and each once', async () => {
  const wallets = await Promise.all(Array.from({ length: 12 }, newWallet));
  const signatures = await Promise.all(wallets.map((wallet) => deposited(wallet)));
  node.state.fault = 'cut';
  for (const [index, wallet] of wallets.entries()) await confirm(wallet, signatures[index]);
  node.state.fault = null;
  await Promise.all([keep(0), keep(1)]);
  await keep(0);
  for (const [index, wallet] of wallets.entries()) {
    assert.equal((await claimOf(signatures[index] ?? '', wallet))?.state, 'confirmed');
    assert.equal((await movesOf(wallet)).length, 1);
  }
});

test('a deposit that nobody confirms is found by its fee, with the withdrawal that follows it', async () => {
  const wallet = await newWallet();
  const fee = node.land(await feeScript(wallet, node.treasuryAccount, FEE));
  const signature = await deposited(wallet);
  await keep();
  await keep();
  assert.deepEqual([...(await movesOf(wallet))], [{ kind: 'deposit', usdc: NET, collateral: COLLATERAL }]);
  assert.deepEqual((await refunds(wallet)).refunds, []);
  assert.equal((await confirm(wallet, signature)).body.feeTxSignature, fee);
  node.land(
    await withdrawalScript(wallet, node.treasuryAccount, {
      usdc: 997_797_573n,
      collateral: COLLATERAL,
      held: COLLATERAL,
      fee: 5_408_622n,
    }),
  );
  await keep();
  assert.deepEqual(
    [...(await movesOf(wallet))].map(({ kind }) => kind),
    ['deposit', 'withdrawal'],
  );
  assert.deepEqual((await refunds(wallet)).refunds, [], 'what a withdrawal pays is no fee of a deposit');
});

/** A payment of the treasury's to a wallet, which says that it sends a fee back. */
async function refundScript(
  wallet: Address,
  fee: string,
  { signer = node.treasury, amount = FEE }: { signer?: Address; amount?: bigint } = {},
): Promise<Script> {
  const { usdc } = ownAccountsOf(wallet);
  return {
    signers: [signer],
    steps: [
      transferUsdc({ owner: signer, from: node.treasuryAccount, to: usdc, amountRaw: amount }),
      memoStep(`refund ${fee}`),
    ],
    tokens: { [usdc]: [USDC_MINT, 0n, amount], [node.treasuryAccount]: [USDC_MINT, amount, 0n] },
  };
}

test('a fee whose deposit failed or never came is listed for refund, until the treasury sends it back', async () => {
  for (const failed of [true, false]) {
    const wallet = await newWallet();
    const fee = node.land(await feeScript(wallet, node.treasuryAccount, FEE));
    if (failed) await deposited(wallet, { err: { InstructionError: [3, { Custom: 6090 }] } });
    await keep();
    assert.equal((await refunds(wallet)).refunds[0]?.status, 'waiting_for_deposit');
    node.state.slot += 2_000;
    await keep();
    const listed = await refunds(wallet);
    assert.deepEqual(
      [listed.dueRaw, listed.refunds[0]?.feeTxSignature, listed.refunds[0]?.status],
      [String(FEE), fee, 'refund_due'],
    );
    assert.match(listed.refunds[0]?.reason, failed ? /failed on the chain/ : /No deposit followed/);

    const owed = (await owedByOperator()).filter(({ to }) => to === wallet);
    assert.deepEqual(
      owed.map(({ amount, how }) => [amount, how]),
      [['5.000000 USDC', `Send it from ${node.treasury} with this memo: refund ${fee}`]],
    );

    // Neither anybody else's word nor less than was paid ends it.
    node.land(await refundScript(wallet, fee, { signer: await newWallet() }));
    node.land(await refundScript(wallet, fee, { amount: FEE - 1n }));
    await keep();
    assert.equal((await refunds(wallet)).refunds[0]?.status, 'refund_due');
    const sent = node.land(await refundScript(wallet, fee));
    await keep();
    const [ended] = (await refunds(wallet)).refunds;
    assert.deepEqual([ended.status, ended.refundTxSignature], ['refunded', sent]);
    assert.equal((await refunds(wallet)).dueRaw, '0');
    assert.deepEqual(
      (await owedByOperator()).filter(({ to }) => to === wallet),
      [],
    );
  }
});

/** Keeps what the portal's tables hold. @returns what puts it back, as a restored backup has it */
async function keepTables(): Promise<() => Promise<void>> {
  const { patient } = database;
  const tables = await patient<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_name like 'solana\\_yield\\_%'`;
  assert(tables.length >= 6);
  for (const { name } of tables) await patient.unsafe(`create table kept_${name} as select * from ${name}`);
  return () =>
    patient.begin(async (transaction) => {
      await transaction.unsafe(`truncate ${tables.map(({ name }) => name).join(', ')}`);
      for (const { name } of tables)
        await transaction.unsafe(`insert into ${name} select * from kept_${name}; drop table kept_${name}`);
    });
}

test('a database restored to yesterday reads on the chain what came since: nothing counts twice, no fee is due again', async () => {
  await keep();
  const putBack = await keepTables();
  const [saver, leaver] = [await newWallet(), await newWallet()];
  const feeOfSaver = node.land(await feeScript(saver, node.treasuryAccount, FEE));
  const signature = await deposited(saver);
  assert.equal((await confirm(saver, signature)).body.verificationStatus, 'confirmed');
  const script = { ...(await feeScript(leaver, node.treasuryAccount, FEE)), slot: node.state.slot };
  const fee = node.land(script);
  await keep();
  node.state.slot += 2_000;
  await keep();
  assert.equal((await refunds(leaver)).refunds[0]?.status, 'refund_due');
  const sent = node.land(await refundScript(leaver, fee));
  await keep();
  assert.equal((await refunds(leaver)).refunds[0]?.refundTxSignature, sent);

  await putBack();
  assert.deepEqual([(await movesOf(saver)).length, (await refunds(leaver)).refunds], [0, []]);
  // The node does not show the fee at first, though it shows the refund that follows.
  node.hide(fee);
  await keep();
  assert.deepEqual((await refunds(leaver)).refunds, []);
  node.land({ ...script, signature: fee });
  for (const replica of [0, 1, 0]) {
    await keep(replica);
    assert.equal((await refunds(leaver)).dueRaw, '0', 'it would be sent back a second time');
  }
  assert.deepEqual([...(await movesOf(saver))], [{ kind: 'deposit', usdc: NET, collateral: COLLATERAL }]);
  const again = await confirm(saver, signature);
  assert.deepEqual(
    [again.body.verificationStatus, again.body.feeTxSignature, (await movesOf(saver)).length],
    ['confirmed', feeOfSaver, 1],
  );
  const [ended] = (await refunds(leaver)).refunds;
  assert.deepEqual([ended.status, ended.refundTxSignature], ['refunded', sent]);
});

test('a hundred stray payments hide no refund of a deposit that failed, and are paged', async () => {
  const strays: string[] = [];
  for (let count = 0; count < 101; count += 1) {
    strays.push(await newWallet());
    node.land(await feeScript(strays[count] as Address, node.treasuryAccount, 25_000n));
  }
  const large = await newWallet();
  node.land(await feeScript(large, node.treasuryAccount, 2n * FEE));
  const failed = await newWallet();
  node.land(await feeScript(failed, node.treasuryAccount, 26_000n));
  await deposited(failed, { err: { InstructionError: [3, { Custom: 6090 }] } });
  await keep();
  node.state.slot += 2_000;
  // A round looks for the deposits of a hundred fees.
  await keep();
  await keep();
  const first = await owedByOperator();
  assert.equal(first.length, 100);
  // Deposits that failed come first, then what is most.
  const place = (wallet: string) => first.findIndex(({ to }) => to === wallet);
  assert(place(failed) >= 0 && place(failed) < place(large), `${place(failed)} ${place(large)}`);
  const stray = first.findIndex(({ amount }) => amount === '0.025000 USDC');
  assert(place(large) < stray, `${place(large)} ${stray}`);
  const response = await fetch(`${servers[0]?.url}/admin/api/owed?skip=100`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const { owed, total } = await jsonOf(response);
  assert.equal(owed.length, total - 100);
  const listed = new Set([...first, ...owed].map(({ to }: { to: string }) => to));
  assert.deepEqual(
    strays.filter((each) => !listed.has(each)),
    [],
  );
  await database.sql`DELETE FROM solana_yield_fees`;
});

test('fees of one wallet are one line for the operator, which one payment ends, and the wallet pages through them', async () => {
  const wallet = await newWallet();
  const fees: string[] = [];
  for (let count = 0; count < 7; count += 1)
    fees.push(node.land(await feeScript(wallet, node.treasuryAccount, FEE)));
  await keep();
  node.state.slot += 2_000;
  await keep();
  const [line, ...others] = (await owedByOperator()).filter(({ to }) => to === wallet);
  assert.deepEqual([line?.amount, others], ['25.000000 USDC', []]);
  assert.match(line?.reason ?? '', /5 of 7 fees/);
  const named = fees.filter((fee) => line?.how.includes(fee));
  assert.equal(named.length, 5);
  const { usdc } = ownAccountsOf(wallet);
  const amountRaw = 5n * FEE;
  node.land({
    signers: [node.treasury],
    steps: [
      transferUsdc({ owner: node.treasury, from: node.treasuryAccount, to: usdc, amountRaw }),
      memoStep(`refund ${named.join(' ')}`),
    ],
    tokens: { [usdc]: [USDC_MINT, 0n, amountRaw], [node.treasuryAccount]: [USDC_MINT, amountRaw, 0n] },
  });
  await keep();
  const left = (await owedByOperator()).filter(({ to }) => to === wallet);
  assert.deepEqual(
    left.map(({ amount }) => amount),
    ['10.000000 USDC'],
  );
  // What is due is told in full on every page.
  await database.sql`
    INSERT INTO solana_yield_fees (signature, wallet, usdc, slot, at, state, reason, next_at)
    SELECT ${wallet.slice(0, 20).repeat(3)} || lpad(translate(g::text, '0', 'z'), 8, 'z'), ${wallet}, 1, 1, now(), 'unused', 'NO_DEPOSIT', now()
    FROM generate_series(1, 150) AS g`;
  const seen = new Set<string>();
  let at: string | null = `${servers[0]?.url}/api/solana-yield/fee-refunds/${wallet}`;
  let pages = 0;
  while (at !== null) {
    const page = await jsonOf(
      await fetch(new URL(new URL(at).pathname + new URL(at).search, servers[0]?.url)),
    );
    assert.equal(page.dueRaw, String(2n * FEE + 150n));
    for (const { feeTxSignature } of page.refunds) seen.add(feeTxSignature);
    at = page.next;
    pages += 1;
  }
  assert.deepEqual([pages, seen.size], [2, 157]);
  const wrong = await fetch(`${servers[0]?.url}/api/solana-yield/fee-refunds/${wallet}?after=x'`);
  assert.deepEqual([wrong.status, (await jsonOf(wrong)).fields[0].field], [400, 'after']);
  await database.sql`DELETE FROM solana_yield_fees`;
});

test('of several transfers of a wallet in one transaction all count as its fee', async () => {
  const wallet = await newWallet();
  const script = await feeScript(wallet, node.treasuryAccount, FEE / 2n);
  const { usdc } = ownAccountsOf(wallet);
  const tokens = { [usdc]: [USDC_MINT, FEE, 0n], [node.treasuryAccount]: [USDC_MINT, 0n, FEE] } as const;
  node.land({ ...script, steps: [...script.steps, ...script.steps], tokens });
  await keep();
  assert.equal((await refunds(wallet)).refunds[0]?.amountRaw, String(FEE));
});

test('a deposit that comes late takes the fee that was due back', async () => {
  const wallet = await newWallet();
  node.land(await feeScript(wallet, node.treasuryAccount, FEE));
  await keep();
  node.state.slot += 2_000;
  await keep();
  assert.equal((await refunds(wallet)).dueRaw, String(FEE));
  await confirm(wallet, await deposited(wallet));
  assert.deepEqual((await refunds(wallet)).refunds, []);
});

test('a deposit that comes late and that nobody confirms is found, though its fee was due back', async () => {
  const wallet = await newWallet();
  node.land(await feeScript(wallet, node.treasuryAccount, FEE));
  await keep();
  node.state.slot += 2_000;
  await keep();
  assert.equal((await refunds(wallet)).dueRaw, String(FEE));
  await deposited(wallet);
  await keep(0, HOUR_MS + 60_000);
  assert.deepEqual((await refunds(wallet)).refunds, []);
  assert.equal((await movesOf(wallet)).length, 1);
});

test('one payment of the treasury’s does not settle two debts', async () => {
  const wallet = await newWallet();
  const fees = [
    node.land(await feeScript(wallet, node.treasuryAccount, FEE)),
    node.land(await feeScript(wallet, node.treasuryAccount, FEE)),
  ];
  await keep();
  node.state.slot += 2_000;
  await keep();
  const { usdc } = ownAccountsOf(wallet);
  const refund = (amountRaw: bigint): Script => ({
    signers: [node.treasury],
    steps: [
      transferUsdc({ owner: node.treasury, from: node.treasuryAccount, to: usdc, amountRaw }),
      ...fees.map((fee) => memoStep(`refund ${fee}`)),
    ],
    tokens: { [usdc]: [USDC_MINT, 0n, amountRaw], [node.treasuryAccount]: [USDC_MINT, amountRaw, 0n] },
  });
  node.land(refund(FEE));
  await keep();
  assert.equal((await refunds(wallet)).dueRaw, String(2n * FEE));
  node.land(refund(2n * FEE));
  await keep();
  assert.equal((await refunds(wallet)).dueRaw, '0');
});

test('calls with much data keep nobody waiting, and a lending call among them still counts', async () => {
  const wallet = await newWallet();
  const real = await depositScript(wallet, { usdc: NET, collateral: COLLATERAL });
  const block = { programAddress: await newWallet(), accounts: [], data: new Uint8Array(10_240).fill(7) };
  const lends = { ...block, programAddress: LENDING_PROGRAM };
  const wrapper = { ...block, data: [1] };
  const many = Array.from({ length: 60 }, () => block);
  const signature = node.land({
    ...real,
    inner: { ...real.inner, 1: [...many, lends] },
    steps: [...real.steps, wrapper],
  });
  const [told, answer] = await Promise.all([
    fetch(`${servers[0]?.url}/api/solana-yield/transaction/${signature}`),
    confirm(wallet, signature),
  ]);
  assert.equal((await jsonOf(told)).status, 'confirmed');
  const client = openNode(() => [node.url], Date.now);
  const landed = await client.transaction(signature, 'confirmed');
  await client.close();
  assert(landed !== null && landed !== 'unreadable');
  assert.deepEqual([...new Set(landed.inner.get(1)?.map(({ data }) => data.length))], [0], 'it is not read');
  assert.deepEqual([answer.status, answer.body.error], [400, 'SEVERAL_AT_ONCE']);
});

test('a transaction whose deeds no node shows is given up, and holds up no other claim', async () => {
  const [wallet, other] = [await newWallet(), await newWallet()];
  const hidden = await deposited(wallet);
  node.hide(hidden);
  assert.equal((await confirm(wallet, hidden)).body.verificationStatus, 'pending_verification');
  const signature = await deposited(other);
  node.state.fault = 'cut';
  await confirm(other, signature);
  node.state.fault = null;
  await keep();
  assert.equal((await claimOf(hidden, wallet))?.state, 'pending');
  assert.equal((await claimOf(signature, other))?.state, 'confirmed');
});

test('one fee is for one deposit, and only for one of its size', async () => {
  const wallet = await newWallet();
  const fee = node.land(await feeScript(wallet, node.treasuryAccount, FEE));
  await keep();
  const small = node.land(await depositScript(wallet, { usdc: 4_975_000n, collateral: 4_000_000n }));
  assert.equal((await confirm(wallet, small)).body.feeTxSignature, null);
  // The program may take up to two units less than it is given.
  const right = node.land(await depositScript(wallet, { usdc: NET - 2n, collateral: COLLATERAL }));
  assert.equal((await confirm(wallet, right)).body.feeTxSignature, fee);
  const again = node.land(await depositScript(wallet, { usdc: NET, collateral: COLLATERAL }));
  assert.equal((await confirm(wallet, again)).body.feeTxSignature, null);
});

test('fees that were never used, however many, keep no later deposit from its own', async () => {
  const wallet = await newWallet();
  await database.sql`
    INSERT INTO solana_yield_fees (signature, wallet, usdc, slot, at, state, reason, next_at)
    SELECT ${wallet.slice(0, 20).repeat(3)} || lpad(translate(g::text, '0', 'z'), 8, 'z'), ${wallet}, 1, 1, now(), 'unused', 'NO_DEPOSIT', now()
    FROM generate_series(1, 250) AS g`;
  const fee = node.land(await feeScript(wallet, node.treasuryAccount, FEE));
  await keep();
  const { body } = await confirm(wallet, await deposited(wallet));
  assert.deepEqual([body.verificationStatus, body.feeTxSignature], ['confirmed', fee]);
  await database.sql`DELETE FROM solana_yield_fees`;
});

test('a walk over more payments than a page ends where it began, though it is cut off between two pages', async () => {
  const wallet = await newWallet();
  await keep();
  const first = node.land(await feeScript(wallet, node.treasuryAccount, FEE));
  const dust = await feeScript(await newWallet(), node.treasuryAccount, 1n);
  for (let count = 0; count < 1_150; count += 1) node.land(dust);
  // The node falls silent after the first page.
  const asked = node.state.asked.get('getSignaturesForAddress') ?? 0;
  const part = servers[0]?.app.parts.find(({ name }) => name === 'solana-yield');
  const round = part?.jobs?.find(({ name }) => name === 'solana-yield-keep')?.run();
  while ((node.state.asked.get('getSignaturesForAddress') ?? 0) < asked + 2)
    await new Promise((resolve) => setImmediate(resolve));
  node.state.fault = 'cut';
  await round;
  node.state.fault = null;
  const known = async () =>
    (await database.sql`SELECT 1 FROM solana_yield_fees WHERE signature = ${first}`).length;
  for (let rounds = 0; rounds < 5 && (await known()) === 0; rounds += 1) await keep(rounds % 2);
  assert.equal(await known(), 1);
  const [walk] = await database.sql`SELECT head FROM solana_yield_walks`;
  assert.equal(walk?.head, null);
});

test('a walk waits for a node that knows how far it has come, and passes nothing over', async () => {
  const { createWalk } = await import('../../../../packages/yield/src/solana/walk.ts');
  const account = await newWallet();
  const all = Array.from({ length: 1_500 }, (_, index) => ({
    signature: `${account}-${index}`,
    slot: SINCE_SLOT + 1_500 - index,
    err: null,
    atMs: null,
  }));
  let isKnown = false;
  const walk = createWalk({
    sql: database.sql,
    node: {
      signaturesOf: async (_address: string, { before: below }: { before: string | null }) => {
        const from = below === null ? 0 : all.findIndex(({ signature }) => signature === below) + 1;
        return below === null || isKnown ? all.slice(from, from + 1_000) : [];
      },
      statuses: async () => ({ slot: 1, statuses: [isKnown ? { slot: 1, err: null, final: true } : null] }),
    } as never,
    portal: { treasuryAccount: async () => account, sinceSlot: SINCE_SLOT } as never,
    logger: { warn: () => {} },
    nowMs: Date.now,
  });
  const told = async () => {
    const [row] = await database.sql<{ count: bigint }[]>`
      SELECT count(*) AS count FROM solana_yield_unread WHERE signature LIKE ${`${account}-%`}`;
    return Number(row?.count);
  };
  await walk.list();
  assert.equal(await told(), 1_000);
  isKnown = true;
  await walk.list();
  assert.equal(await told(), 1_500);
  await database.sql`DELETE FROM solana_yield_unread WHERE signature LIKE ${`${account}-%`}`;
  await database.sql`DELETE FROM solana_yield_walks WHERE account = ${account}`;
});

test('a deposit that the chain takes back is taken back here too', async () => {
  const wallet = await newWallet();
  node.state.final = false;
  const signature = await deposited(wallet);
  assert.equal((await confirm(wallet, signature)).body.verificationStatus, 'confirmed');
  node.forget(signature);
  await keep();
  assert.equal((await movesOf(wallet)).length, 1, 'a node may be late by some slots');
  node.state.slot += 1_000;
  node.state.firstBlock = node.state.slot - 100;
  await keep();
  assert.equal((await movesOf(wallet)).length, 1, 'nor has every node all of the past');
  node.state.firstBlock = 0;
  await keep();
  assert.equal((await movesOf(wallet)).length, 0);
  node.state.final = true;
  assert.equal((await confirm(wallet, signature)).body.verificationStatus, 'pending_verification');
});

test('who claims random signatures takes no more than a part of what may wait', async () => {
  node.state.fault = 'cut';
  // However slow the machine is, they are claimed within one minute of the limit.
  stoppedAtMs = Date.now() + clockMs;
  const answers: unknown[] = [];
  for (let count = 0; count < 101; count += 1) {
    const { status, body } = await confirm(await newWallet(), newSignature(), {}, 1);
    answers.push([status, body.error]);
  }
  node.state.fault = null;
  stoppedAtMs = null;
  assert.deepEqual(answers.at(-1), [503, 'TOO_MANY_PENDING']);
  // Nobody waits for these.
  await database.sql`DELETE FROM solana_yield_claims WHERE state = 'pending'`;
});

test('strangers’ claims for a wallet neither keep its own out nor show on its page, which its own do', async () => {
  const wallet = await newWallet();
  stoppedAtMs = Date.now() + clockMs + HOUR_MS;
  for (let count = 0; count < 55; count += 1)
    assert.equal((await confirm(wallet, newSignature(), {}, count % 2)).status, 200);
  const pending = () => createClaims(database.sql, () => Date.now()).pendingOf(wallet);
  assert.equal(await pending(), 0);
  node.state.fault = 'cut';
  const own = await confirm(wallet, newSignature(), {}, 0);
  node.state.fault = null;
  stoppedAtMs = null;
  assert.deepEqual([own.status, own.body.verificationStatus], [200, 'pending_verification']);
  // The wallet alone can pay a fee: one that waits for its deposit says that one claim is meant.
  node.land(await feeScript(wallet, node.treasuryAccount, FEE));
  await keep(0, 0);
  assert.equal(await pending(), 1);
  await database.sql`DELETE FROM solana_yield_claims WHERE state = 'pending'`;
  assert.equal(await pending(), 0);
});

test('a node that is not what the portal was made for confirms nothing', async () => {
  const program = node.accounts.get(LENDING_PROGRAM);
  node.accounts.set(LENDING_PROGRAM, { ...program, executable: false });
  const server = await startTestServer({
    pools: database,
    environment: {
      UPSTREAM_SOLANA_BASE_URL: node.url,
      SOLANA_YIELD_TREASURY: node.treasury,
      SOLANA_YIELD_SINCE_SLOT: '0',
    },
  });
  try {
    const wallet = await newWallet();
    const response = await fetch(`${server.url}/api/solana-yield/confirm`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ wallet, txSignature: await deposited(wallet) }),
    });
    assert.equal((await jsonOf(response)).verificationStatus, 'pending_verification');
    const built = await fetch(`${server.url}/api/solana-yield/deposit-tx`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ wallet, amount_usdc: 100 }),
    });
    const body = await jsonOf(built);
    assert.deepEqual([built.status, body.error], [503, 'SOLANA_YIELD_NOT_READY']);
    assert.match(body.reason, new RegExp(`no program at ${LENDING_PROGRAM}`));
  } finally {
    node.accounts.set(LENDING_PROGRAM, program ?? {});
    await server.close();
  }
});
