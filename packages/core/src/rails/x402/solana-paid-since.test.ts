/** What is read from a node of Solana that shows less than it should, or what is not ours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refundedCallIn, refundMemo } from './refund-memo.ts';
import { solanaPaidSince } from './solana-paid-since.ts';
import { tokenAccountOf } from './solana-programs.ts';

const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const US = '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin';
const REFUNDER = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D6xWLs4gDB4T';
const STRANGER = '7Np41oeYqPefeNQEHSv1UDhYrehxin3NStELsSKCT4K2';
const CALL = '6f9619ff-8b86-4011-b42d-00c04fc964ff';
const SINCE_S = 1_800_000_000;

type Balances = readonly (readonly [owner: string, units: number])[];

function balance([owner, units]: Balances[number]) {
  return { accountIndex: 1, mint: USDC, owner, uiTokenAmount: { amount: String(units) } };
}

function landed(before: Balances, after: Balances) {
  return {
    transaction: ['AA==', 'base64'],
    meta: { err: null, preTokenBalances: before.map(balance), postTokenBalances: after.map(balance) },
  };
}

/** A node with these transactions of each token account; null: it lists one and does not have it. */
async function nodeWith(
  told: { us?: (object | null)[]; refunder?: (object | null)[] },
  { firstBlock = 0, blockTimeS = SINCE_S, isFullPage = false, err = null as unknown } = {},
) {
  const accounts = new Map([
    [await tokenAccountOf(US, USDC), told.us ?? []],
    [await tokenAccountOf(REFUNDER, USDC), told.refunder ?? []],
  ]);
  const bySignature = new Map<string, object | null>();
  const say: Record<string, (params: readonly unknown[]) => unknown> = {
    getFirstAvailableBlock: () => firstBlock,
    getBlockTime: () => blockTimeS,
    getSlot: () => 1_000,
    getSignaturesForAddress: ([account]) => {
      const all = accounts.get(String(account)) ?? [];
      const listed = all.map((each, index) => {
        const signature = `${account} ${index}`;
        bySignature.set(signature, each);
        return { signature, blockTime: SINCE_S + 1, memo: null, err };
      });
      return isFullPage ? Array.from({ length: 1_000 }, () => listed[0]) : listed;
    },
    getTransaction: ([signature]) => bySignature.get(String(signature)) ?? null,
  };
  const call = async (method: string, params: readonly unknown[]) => say[method]?.(params);
  const rpc = {
    call,
    batch: (method: string, all: readonly (readonly unknown[])[]) =>
      Promise.all(all.map((params) => call(method, params))),
  };
  return { rpc, network: 'solana', asset: USDC, payTo: US, refunder: REFUNDER };
}

const read = async (...of: Parameters<typeof nodeWith>) =>
  solanaPaidSince(await nodeWith(...of), SINCE_S * 1_000);

test('a node that has forgotten a part of the time says nothing', async () => {
  assert.equal(await read({}, { firstBlock: 7, blockTimeS: SINCE_S + 1 }), null);
  assert.deepEqual(await read({}, { firstBlock: 7 }), { came: [], plain: [], sentBack: [] });
});

test('less than is listed is no answer, nor is a part of too much', async () => {
  await assert.rejects(read({ us: [null] }), /lists .* and does not have it/);
  await assert.rejects(read({ us: [landed([], [])] }, { isFullPage: true }), RangeError);
});

test('what failed moved nothing, and who gave what nobody signed for us is told', async () => {
  const gift = landed(
    [[STRANGER, 9]],
    [
      [STRANGER, 2],
      [US, 7],
    ],
  );
  assert.deepEqual((await read({ us: [gift] }))?.plain, [
    { transaction: `${await tokenAccountOf(US, USDC)} 0`, from: STRANGER, units: 7n },
  ]);
  assert.deepEqual(await read({ us: [gift] }, { err: { InstructionError: [0, 'Custom'] } }), {
    came: [],
    plain: [],
    sentBack: [],
  });
});

test('what comes to the key for refunds is no refund, whatever its memo says', async () => {
  const funding = landed(
    [
      [STRANGER, 9],
      [REFUNDER, 1],
    ],
    [
      [STRANGER, 2],
      [REFUNDER, 8],
    ],
  );
  assert.deepEqual((await read({ refunder: [funding] }))?.sentBack, []);
});

test('a memo names one call, or none', () => {
  assert.equal(refundedCallIn(['hello', refundMemo(CALL)]), CALL);
  assert.equal(refundedCallIn([`${refundMemo(CALL)}, and more`, `refund of call ${CALL.slice(1)}`]), null);
  assert.equal(refundedCallIn([]), null);
});
