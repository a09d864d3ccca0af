import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  AccountRole,
  type Address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  createTransactionMessage,
  getBase58Decoder,
  getTransactionEncoder,
  type Instruction,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit';
import { COLLATERAL_MINT, TOKEN_PROGRAM, USDC_MINT } from './addresses.ts';
import {
  createTokenAccount,
  depositReserveLiquidity,
  ownAccountsOf,
  redeemReserveCollateral,
  setUnitLimit,
  setUnitPrice,
  transferUsdc,
} from './instructions.ts';
import { unsignedTransaction } from './unsigned-transaction.ts';

const newAddress = () => getBase58Decoder().decode(randomBytes(32)) as Address;

function byKit(wallet: Address, blockhash: string, instructions: readonly Instruction[]): string {
  const lifetime = { blockhash: blockhash as Blockhash, lastValidBlockHeight: 1n };
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (each) => setTransactionMessageFeePayer(wallet, each),
    (each) => setTransactionMessageLifetimeUsingBlockhash(lifetime, each),
    (each) => appendTransactionMessageInstructions(instructions, each),
  );
  return Buffer.from(getTransactionEncoder().encode(compileTransaction(message))).toString('hex');
}

test('transactions are byte for byte those of kit, for whatever wallet', () => {
  for (let round = 0; round < 100; round += 1) {
    const [wallet, treasury, blockhash] = [newAddress(), newAddress(), newAddress()];
    const own = ownAccountsOf(wallet);
    const units = [setUnitLimit(100_000 + round), setUnitPrice(BigInt(round))];
    const fee = transferUsdc({ owner: wallet, from: own.usdc, to: treasury, amountRaw: BigInt(round) });
    const opens = { usdc: { owner: wallet, mint: USDC_MINT, account: own.usdc }, mint: COLLATERAL_MINT };
    const opened = createTokenAccount(wallet, { owner: wallet, mint: opens.mint, account: own.collateral });
    const deposit = [opened, depositReserveLiquidity(own, 5n)];
    const leaving = [createTokenAccount(wallet, opens.usdc), redeemReserveCollateral(own, 7n), fee];
    const roles = [AccountRole.READONLY, AccountRole.WRITABLE, AccountRole.READONLY_SIGNER] as const;
    // An account with several roles has the most of them, and a further signer a signature of its own.
    const mixed = roles.map((role) => ({
      programAddress: newAddress(),
      accounts: [...roles, AccountRole.WRITABLE_SIGNER].flatMap((own) => [
        { address: treasury, role },
        { address: newAddress(), role: own },
      ]),
    }));
    for (const work of [[fee], deposit, [fee, ...deposit], leaving, mixed, []]) {
      const ours = unsignedTransaction(wallet, blockhash, [...units, ...work]).toString('hex');
      assert.equal(ours, byKit(wallet, blockhash, [...units, ...work]));
    }
  }
});

test('a program that is called neither pays nor is written to', () => {
  const [wallet, other] = [newAddress(), newAddress()];
  const written = { address: TOKEN_PROGRAM, role: AccountRole.WRITABLE };
  for (const work of [{ programAddress: wallet }, { programAddress: TOKEN_PROGRAM, accounts: [written] }]) {
    assert.throws(() => unsignedTransaction(wallet, other, [work]), /is called/);
    assert.throws(() => byKit(wallet, other, [work]));
  }
});

test('counts that a transaction here never reaches are refused', () => {
  const work = { programAddress: newAddress(), data: new Uint8Array(128) };
  assert.throws(() => unsignedTransaction(newAddress(), newAddress(), [work]), RangeError);
});
