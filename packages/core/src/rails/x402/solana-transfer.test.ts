import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import {
  AccountRole,
  type Address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createNoopSigner,
  createTransactionMessage,
  generateKeyPairSigner,
  getBase64EncodedWireTransaction,
  type Instruction,
  type KeyPairSigner,
  partiallySignTransaction,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  type Transaction,
} from '@solana/kit';
import {
  findAssociatedTokenPda,
  getApproveCheckedInstruction,
  getTransferCheckedInstruction,
  getTransferInstruction,
  TOKEN_PROGRAM_ADDRESS,
} from '@solana-program/token';
import { PaymentRefused } from '../../paid-call/rail.ts';
import { tokenAccountOf } from './solana-programs.ts';
import { readSolanaTransfer } from './solana-transfer.ts';

const ASSET = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' as Address;
const OTHER_MINT = 'So11111111111111111111111111111111111111112' as Address;
const BLOCKHASH = '4vJ9JU1bJJE96FWSJKvHsmmFADCg4gpZQff4P3bkLKi' as Blockhash;
const PRICE = 50_000n;

let payer: KeyPairSigner;
let facilitator: KeyPairSigner;
let recipient: Address;
let thief: Address;
before(async () => {
  [payer, facilitator] = await Promise.all([generateKeyPairSigner(), generateKeyPairSigner()]);
  [recipient, thief] = (await Promise.all([generateKeyPairSigner(), generateKeyPairSigner()])).map(
    ({ address }) => address,
  ) as [Address, Address];
});

const ataOf = async (owner: Address, mint = ASSET) =>
  (await findAssociatedTokenPda({ owner, mint, tokenProgram: TOKEN_PROGRAM_ADDRESS }))[0];

async function transferTo(
  owner: Address,
  changes: { amount?: bigint; mint?: Address; authority?: Address } = {},
): Promise<Instruction> {
  const mint = changes.mint ?? ASSET;
  return getTransferCheckedInstruction({
    source: await ataOf(payer.address, mint),
    mint,
    destination: await ataOf(owner, mint),
    authority: createNoopSigner(changes.authority ?? payer.address),
    amount: changes.amount ?? PRICE,
    decimals: 6,
  });
}

const computeBudget = (data: number[]): Instruction => ({
  programAddress: 'ComputeBudget111111111111111111111111111111' as Address,
  data: Uint8Array.from(data),
});
const LIMIT = computeBudget([2, 0x40, 0x0d, 0x03, 0]);
const UNIT_PRICE = computeBudget([3, 1, 0, 0, 0, 0, 0, 0, 0]);
const memo = (text: string): Instruction => ({
  programAddress: 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr' as Address,
  data: new TextEncoder().encode(text),
});

interface Build {
  version?: 0 | 'legacy';
  feePayer?: Address;
  signers?: readonly KeyPairSigner[];
}

async function transactionOf(instructions: readonly Instruction[], build: Build = {}): Promise<Transaction> {
  const message = pipe(
    createTransactionMessage({ version: build.version ?? 0 }),
    (each) => setTransactionMessageFeePayer(build.feePayer ?? facilitator.address, each),
    (each) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: BLOCKHASH, lastValidBlockHeight: 1n }, each),
    (each) => appendTransactionMessageInstructions(instructions, each),
  );
  return signedBy(build.signers ?? [payer], compileTransaction(message));
}

function signedBy(signers: readonly KeyPairSigner[], transaction: Transaction): Promise<Transaction> {
  return partiallySignTransaction(
    signers.map(({ keyPair }) => keyPair),
    transaction,
  );
}

async function read(instructions: readonly Instruction[], build: Build = {}) {
  const wire = getBase64EncodedWireTransaction(await transactionOf(instructions, build));
  return readSolanaTransfer(wire, { asset: ASSET, payTo: recipient });
}

const refusedWith = (code: string) => (error: unknown) => {
  assert.ok(error instanceof PaymentRefused, `not a refusal: ${error}`);
  assert.equal(error.code, code);
  return true;
};

test("an account of the asset is the one that Solana's own library finds", async () => {
  assert.equal(await tokenAccountOf(recipient, ASSET), await ataOf(recipient));
});

for (const version of [0, 'legacy'] as const) {
  test(`a payment is read from a transaction of version ${version}`, async () => {
    const instructions = [LIMIT, UNIT_PRICE, await transferTo(recipient), memo('abc')];
    const found = await read(instructions, { version });
    const { messageHash, ...rest } = found;
    assert.deepEqual(rest, {
      payer: payer.address,
      source: await ataOf(payer.address),
      amountUnits: PRICE,
      feePayer: facilitator.address,
      blockhash: BLOCKHASH,
      memo: 'abc',
    });
    // The same payment however it is sent: before and after the facilitator signed it.
    const both = await read(instructions, { version, signers: [payer, facilitator] });
    assert.equal(both.messageHash, messageHash);
    const other = await read([LIMIT, UNIT_PRICE, await transferTo(recipient), memo('abd')], { version });
    assert.notEqual(other.messageHash, messageHash);
  });
}

test('as much as a number of 64 bits is read as it is', async () => {
  const amount = 2n ** 64n - 1n;
  assert.equal((await read([await transferTo(recipient, { amount })])).amountUnits, amount);
});

test('what wallets add to protect their owner stands beside the transfer', async () => {
  const assertion: Instruction = {
    programAddress: 'L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95' as Address,
    data: Uint8Array.from([0]),
  };
  assert.equal((await read([await transferTo(recipient), assertion])).amountUnits, PRICE);
});

test('an approval, which moves nothing, is no transfer though its bytes look like one', async () => {
  const approval = getApproveCheckedInstruction({
    source: await ataOf(payer.address),
    mint: ASSET,
    delegate: await ataOf(recipient),
    owner: createNoopSigner(payer.address),
    amount: PRICE,
    decimals: 6,
  });
  await assert.rejects(read([approval]), refusedWith('PAYMENT_TRANSACTION_UNSUITABLE'));
});

test('a transfer to anybody else is refused, also to an account of ours that is no token account', async () => {
  await assert.rejects(read([await transferTo(thief)]), refusedWith('PAYMENT_RECIPIENT_MISMATCH'));
  const toWallet = getTransferCheckedInstruction({
    source: await ataOf(payer.address),
    mint: ASSET,
    destination: recipient,
    authority: createNoopSigner(payer.address),
    amount: PRICE,
    decimals: 6,
  });
  await assert.rejects(read([toWallet]), refusedWith('PAYMENT_RECIPIENT_MISMATCH'));
});

const UNSUITABLE: Record<string, () => Promise<[Instruction[], Build?]>> = {
  'no transfer': async () => [[LIMIT, memo('abc')], { signers: [] }],
  'two transfers': async () => [[await transferTo(recipient), await transferTo(recipient)]],
  'a transfer to us and one to somebody else': async () => [
    [await transferTo(recipient), await transferTo(thief)],
  ],
  'another token': async () => [[await transferTo(recipient, { mint: OTHER_MINT })]],
  'an unchecked transfer': async () => [
    [
      getTransferInstruction({
        source: await ataOf(payer.address),
        destination: await ataOf(recipient),
        authority: createNoopSigner(payer.address),
        amount: PRICE,
      }),
    ],
  ],
  'any other program beside it': async () => [
    [await transferTo(recipient), { programAddress: thief, data: Uint8Array.of(1) }],
  ],
  'a program that only looks like the token program': async () => [
    [{ ...(await transferTo(recipient)), programAddress: thief }],
  ],
  'a transfer with bytes after it': async () => {
    const transfer = await transferTo(recipient);
    return [[{ ...transfer, data: Uint8Array.from([...(transfer.data ?? []), 0]) }]];
  },
  'a fee that the payer pays': async () => [[await transferTo(recipient)], { feePayer: payer.address }],
  'more instructions than a payment needs': async () => [
    [await transferTo(recipient), ...Array.from({ length: 7 }, (_, index) => memo(String(index)))],
  ],
};
for (const [what, make] of Object.entries(UNSUITABLE)) {
  test(`${what}: refused`, async () => {
    const [instructions, build] = await make();
    await assert.rejects(read(instructions, build), refusedWith('PAYMENT_TRANSACTION_UNSUITABLE'));
  });
}

test('accounts that are looked up elsewhere: refused', async () => {
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (each) => setTransactionMessageFeePayer(facilitator.address, each),
    (each) =>
      setTransactionMessageLifetimeUsingBlockhash({ blockhash: BLOCKHASH, lastValidBlockHeight: 1n }, each),
  );
  const instructions = [await transferTo(recipient)];
  const looked = compressTransactionMessageUsingAddressLookupTables(
    appendTransactionMessageInstructions(instructions, message),
    { [OTHER_MINT]: [await ataOf(recipient)] },
  );
  const wire = getBase64EncodedWireTransaction(await signedBy([payer], compileTransaction(looked)));
  await assert.rejects(
    readSolanaTransfer(wire, { asset: ASSET, payTo: recipient }),
    refusedWith('PAYMENT_TRANSACTION_UNSUITABLE'),
  );
});

test('a transfer that its owner did not sign, or signed before it was changed, is refused', async () => {
  const instructions = [await transferTo(recipient)];
  await assert.rejects(
    read(instructions, { signers: [facilitator] }),
    refusedWith('PAYMENT_SIGNATURE_INVALID'),
  );
  const signed = await transactionOf(instructions);
  const changed = await transactionOf([await transferTo(recipient, { amount: PRICE + 1n })]);
  const forged = getBase64EncodedWireTransaction({ ...changed, signatures: signed.signatures });
  await assert.rejects(
    readSolanaTransfer(forged, { asset: ASSET, payTo: recipient }),
    refusedWith('PAYMENT_SIGNATURE_INVALID'),
  );
  // Somebody else's money, authorized by one's own signature: the authority is who is asked.
  const others = await transferTo(recipient, { authority: thief });
  await assert.rejects(read([others], { signers: [] }), refusedWith('PAYMENT_SIGNATURE_INVALID'));
});

test('the fee payer of the facilitator cannot be made to pay', async () => {
  const itsOwn: Instruction = {
    ...(await transferTo(recipient)),
    accounts: [
      { address: await ataOf(facilitator.address), role: AccountRole.WRITABLE },
      { address: ASSET, role: AccountRole.READONLY },
      { address: await ataOf(recipient), role: AccountRole.WRITABLE },
      { address: facilitator.address, role: AccountRole.READONLY_SIGNER },
    ],
  };
  await assert.rejects(read([itsOwn], { signers: [] }), refusedWith('PAYMENT_TRANSACTION_UNSUITABLE'));
});

test('junk is refused, whole or cut', async () => {
  const wire = Buffer.from(
    getBase64EncodedWireTransaction(await transactionOf([await transferTo(recipient)])),
    'base64',
  );
  const wanted = { asset: ASSET, payTo: recipient };
  for (let length = 0; length < wire.length; length += 1) {
    await assert.rejects(
      readSolanaTransfer(wire.subarray(0, length).toString('base64'), wanted),
      (error) => error instanceof PaymentRefused,
      `${length} bytes of it`,
    );
  }
  for (let at = 0; at < wire.length; at += 1) {
    const altered = Buffer.from(wire);
    altered.writeUInt8(altered.readUInt8(at) ^ 0x41, at);
    // The facilitator's signature is the one thing that need not be there yet.
    if (at >= 1 && at < 65) continue;
    await assert.rejects(
      readSolanaTransfer(altered.toString('base64'), wanted),
      (error) => error instanceof PaymentRefused,
      `byte ${at}`,
    );
  }
});
