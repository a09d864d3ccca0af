import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { type Address, erc20Abi, type Hex, maxUint256 } from 'viem';
import type { z } from 'zod';
import { startTestChain, type TestChain } from '../../../../../apps/shop/test/chain.fixture.ts';
import { evmChainFacts } from '../../upstreams/adapters/evm-chains.ts';
import { runContext } from '../run-context.fixture.ts';
import approvalManager, { type output } from './approval-manager.ts';

const { usdc, wrappedNative } = evmChainFacts('base');
const PERMIT2: Address = '0x000000000022D473030F116dDEE9F6B43aC78BA3';
const PERSON: Address = '0x00000000000000000000000000000000000d0001';
const UNTOLD: Address = '0x00000000000000000000000000000000000d0002';

let chain: TestChain;
let owner: Address;
before(async () => {
  chain = await startTestChain();
  // One of those that the node signs for.
  const account = (await chain.client.getAddresses())[8];
  assert(account !== undefined);
  owner = account;
});
after(() => chain.stop());

async function run(body: Record<string, unknown>) {
  const made = await approvalManager.run(approvalManager.input.parse(body), runContext(chain.upstreams));
  assert(approvalManager.output.safeParse(made.fields).success);
  return { ...made, fields: made.fields as z.output<typeof output> };
}
const asked = { tokenAddress: usdc, spenderAddress: PERMIT2, chain: 'base' };

const allowanceOf = (spender: Address, token: Address = usdc) =>
  chain.client.readContract({
    address: token,
    abi: erc20Abi,
    functionName: 'allowance',
    args: [owner, spender],
  });
/** Sends what the service built, as it stands there. */
async function send(built: { from: string; to: string; data: string; gas: string | null } | null) {
  assert(built !== null && built.gas !== null);
  const hash = await chain.client.sendTransaction({
    account: built.from as Address,
    to: built.to as Address,
    data: built.data as Hex,
    gas: BigInt(built.gas),
    chain: null,
  });
  const receipt = await chain.client.waitForTransactionReceipt({ hash, pollingInterval: 5 });
  assert.equal(receipt.status, 'success');
}

describe('approval manager', () => {
  it('builds what allows just the amount, reads it back, and builds what revokes it', async () => {
    const before = await run({ ...asked, ownerAddress: owner, amount: '25.0' });
    assert.deepEqual(
      [before.fields.currentAllowance, before.fields.amountRaw, before.fields.spenderIsContract],
      ['0', '25000000', true],
    );
    await send(before.fields.transaction);
    assert.equal(await allowanceOf(PERMIT2), 25_000_000n);

    const after = await run({ ...asked, ownerAddress: owner, amountRaw: '7' });
    assert.deepEqual(
      [after.fields.currentAllowanceFormatted, after.fields.isUnlimited, after.fields.amountRaw],
      ['25', false, '7'],
    );
    assert.match(after.notes.join(' '), /An allowance stands already/);
    await send(after.fields.revokeTransaction);
    assert.equal(await allowanceOf(PERMIT2), 0n);
  });

  it('allows a sanctioned spender nothing, and takes away what it has', async () => {
    const oracle = '0x3A91A31cB3dC49b4db9Ce721F50a9D076c8D739B';
    const code = (await chain.client.getCode({ address: oracle })) ?? '0x';
    // An oracle that lists exactly one address: returns whether the argument equals it.
    await chain.client.setCode({
      address: oracle,
      bytecode: `0x60043573${PERSON.slice(2)}1460005260206000f3`,
    });
    try {
      const of = { ...asked, ownerAddress: owner, spenderAddress: PERSON };
      const refused = { status: 422, code: 'SPENDER_SANCTIONED', field: 'spenderAddress' };
      await assert.rejects(run({ ...of, amountRaw: '7' }), refused);
      await assert.rejects(run(of), refused);
      for (const action of ['revoke', 'check']) {
        assert.notEqual((await run({ ...of, action })).fields.revokeTransaction, null);
      }
      assert.notEqual(
        (await run({ ...asked, ownerAddress: owner, amountRaw: '7' })).fields.transaction,
        null,
      );
    } finally {
      await chain.client.setCode({ address: oracle, bytecode: code });
    }
  });

  it('asks which of the two a whole number means, with both readings, and guesses neither', async () => {
    for (const written of ['25', 25, '1000000']) {
      const read = approvalManager.input.safeParse({ ...asked, ownerAddress: owner, amount: written });
      assert.equal(read.success, false, String(written));
      const [issue] = read.error?.issues ?? [];
      assert.deepEqual(issue?.path, ['amount']);
      for (const reading of [`"${written}.0"`, `amountRaw "${written}"`])
        assert(issue?.message.includes(reading), issue?.message);
    }
    assert.equal(
      approvalManager.input.safeParse({ ...asked, ownerAddress: owner, amount: '1.0', amountRaw: '1' })
        .success,
      false,
    );
    const whole = await run({ ...asked, ownerAddress: owner, amount: '25.0' });
    const raw = await run({ ...asked, ownerAddress: owner, amountRaw: '25000000' });
    assert.deepEqual(
      [whole.fields.amount, whole.fields.amountRaw, whole.fields.transaction?.data],
      ['25', '25000000', raw.fields.transaction?.data],
    );
  });

  it('takes everything for the amount unless told otherwise, and warns of it', async () => {
    const { fields, notes } = await run({ ...asked, ownerAddress: owner });
    assert.deepEqual([fields.amount, fields.amountRaw], ['unlimited', String(maxUint256)]);
    assert.match(notes.join(' '), /take all of this token/);
    await send(fields.transaction);
    assert.equal((await run({ ...asked, ownerAddress: owner, action: 'check' })).fields.isUnlimited, true);
    const revoke = await run({ ...asked, ownerAddress: owner, action: 'revoke' });
    assert.deepEqual(revoke.fields.transaction?.data, revoke.fields.revokeTransaction?.data);
    await send(revoke.fields.transaction);
    assert.equal(await allowanceOf(PERMIT2), 0n);
  });

  it('warns of a spender that is no contract, and says why a trial fails', async () => {
    const { fields, notes } = await run({
      ...asked,
      spenderAddress: PERSON,
      ownerAddress: owner,
      amount: '1.0',
    });
    assert.equal(fields.spenderIsContract, false);
    assert.match(notes.join(' '), /The spender is no contract/);
    const zero = '0x0000000000000000000000000000000000000000';
    const failing = await run({ ...asked, spenderAddress: zero, ownerAddress: owner });
    assert.equal(failing.fields.transaction?.gas, null);
    assert.match(failing.fields.simulation?.revertReason ?? '', /approve to the zero address/);
  });

  it('lists the approvals that stand, once each, with what is left of them', async () => {
    const spenders: readonly [Address, Address, bigint][] = [
      [usdc, PERMIT2, 5n],
      [usdc, PERSON, 9n],
      [wrappedNative.address, PERMIT2, maxUint256],
      [usdc, PERMIT2, 6n],
      [usdc, PERSON, 0n],
    ];
    for (const [address, spender, amount] of spenders) {
      const call = { address, abi: erc20Abi, functionName: 'approve', args: [spender, amount] } as const;
      const hash = await chain.client.writeContract({ ...call, account: owner, chain: null });
      await chain.client.waitForTransactionReceipt({ hash, pollingInterval: 5 });
    }
    const { fields, notes } = await run({ ownerAddress: owner, chain: 'base', action: 'list' });
    assert.deepEqual(
      fields.approvals?.map(({ tokenAddress, spender, allowance, isUnlimited }) => [
        tokenAddress,
        spender,
        allowance,
        isUnlimited,
      ]),
      [
        [usdc, PERMIT2, '6', false],
        [wrappedNative.address, PERMIT2, String(await allowanceOf(PERMIT2, wrappedNative.address)), true],
      ],
    );
    assert.equal(fields.searchedFromBlock, 0);
    assert.match(notes.join(' '), /whole chain was searched/);
    const weth = await run({
      ownerAddress: owner,
      chain: 'base',
      tokenAddress: wrappedNative.address,
      action: 'list',
    });
    assert.equal(weth.fields.approvals?.length, 1);
  });

  it('says how far back it looked', async () => {
    const client = {
      getBlock: async () => ({ number: 1_050_000n, timestamp: 1n, baseFeePerGas: 1n }),
      getLogs: async () => [],
      multicall: async () => [],
    };
    const base = { ...chain.upstreams.base, client } as never;
    const input = approvalManager.input.parse({ ownerAddress: owner, chain: 'base' });
    const { fields, notes } = await approvalManager.run(input, runContext({ base }));
    assert.deepEqual([fields.approvals, fields.searchedFromBlock], [[], 1_000_001]);
    assert.match(notes.join(' '), /since block 1000001 \(50000 blocks\)/);
    assert.match(notes.join(' '), /Older ones may stand/);
  });

  it('refuses what it could not mean', async () => {
    const at = { ownerAddress: owner, chain: 'base' };
    for (const [body, field] of [
      [{ ...at, action: 'revoke' }, 'tokenAddress'],
      [{ ...at, tokenAddress: usdc }, 'spenderAddress'],
      [{ ...asked, ownerAddress: owner, amount: '-1' }, 'amount'],
      [{ ...asked, ownerAddress: PERMIT2.replace('D', 'd') }, 'ownerAddress'],
    ] as const) {
      const parsed = approvalManager.input.safeParse(body);
      assert(
        parsed.error?.issues.some(({ path }) => path[0] === field),
        field,
      );
    }
    await assert.rejects(run({ ...asked, ownerAddress: owner, amount: '0.0000001' }), {
      code: 'TOO_PRECISE',
    });
    const tooMuch = { status: 422, code: 'TOO_MUCH' };
    await assert.rejects(run({ ...asked, ownerAddress: owner, amount: `${maxUint256}.0` }), {
      ...tooMuch,
      field: 'amount',
    });
    await assert.rejects(run({ ...asked, ownerAddress: owner, amountRaw: String(maxUint256 + 1n) }), {
      ...tooMuch,
      field: 'amountRaw',
    });
    // A token that tells what is allowed, and no decimals: it reverts without an argument, and returns 0 to any other call.
    await chain.client.setCode({ address: UNTOLD, bytecode: '0x36600414600c5760206000f35b60006000fd' });
    await assert.rejects(run({ ...asked, ownerAddress: owner, tokenAddress: UNTOLD, amount: '1.5' }), {
      status: 422,
      code: 'NO_DECIMALS',
      field: 'amount',
    });
    await assert.rejects(run({ ...asked, ownerAddress: owner, tokenAddress: PERSON }), { status: 404 });
  });
});
