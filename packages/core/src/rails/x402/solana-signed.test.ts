/** A signer process for Solana signs what settlers and keys for refunds send, and nothing that a taken server could ask for beside it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  AccountRole,
  type Address,
  createNoopSigner,
  getBase64Encoder,
  getTransactionDecoder,
  type Instruction,
} from '@solana/kit';
import {
  AuthorityType,
  getApproveInstruction,
  getCreateAssociatedTokenIdempotentInstruction,
  getSetAuthorityInstruction,
} from '@solana-program/token';
import {
  closing,
  memo,
  signTransaction,
  transferOf,
  unitLimit,
  unitPrice,
} from '../../../../../apps/shop/test/solana.fixture.ts';
import { privateKeyOf, signerOf } from '../../../../sandbox/src/accounts.fixture.ts';
import { startSigner } from '../../relayer/signer-process.ts';
import { heldKey } from './held-key.ts';
import { keptHere, readSolanaKey } from './solana-key.ts';
import { SYSTEM_PROGRAM, tokenAccountOf } from './solana-programs.ts';
import { refusalOfMessage } from './solana-signed.ts';

const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v' as Address;
const BLOCKHASH = '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin';
const us = keptHere(privateKeyOf('refunds')).address as Address;
const payer = (await signerOf('settler')).address;

async function messageOf(instructions: readonly Instruction[], feePayer: string = us): Promise<Uint8Array> {
  const { wire } = await signTransaction(instructions, { feePayer, blockhash: BLOCKHASH, signers: [] });
  return Uint8Array.from(getTransactionDecoder().decode(getBase64Encoder().encode(wire)).messageBytes);
}

const refusedFor = async (instructions: readonly Instruction[], feePayer?: string) =>
  refusalOfMessage(await messageOf(instructions, feePayer), us);

const ours = await transferOf(us, payer, 1_000n);
const theirs = await transferOf(payer, us, 1_000n);
const account = (await tokenAccountOf(us, USDC)) as Address;

test('a settlement and a refund are signed', async () => {
  assert.equal(await refusedFor([unitLimit(60_000), unitPrice(1n), theirs, memo('x')]), null);
  const opening = getCreateAssociatedTokenIdempotentInstruction({
    payer: createNoopSigner(us),
    ata: (await tokenAccountOf(payer, USDC)) as Address,
    owner: payer,
    mint: USDC,
  });
  assert.equal(await refusedFor([unitLimit(120_000), unitPrice(200_000n), opening, ours, memo('x')]), null);
  assert.match(String(await refusedFor([opening, opening, ours])), /opens more than one account/);
});

test('what does more, pays more, or is of another key is not', async () => {
  const lamports = Buffer.alloc(12);
  lamports.writeUInt32LE(2, 0);
  lamports.writeBigUInt64LE(1n, 4);
  const ofSol: Instruction = {
    programAddress: SYSTEM_PROGRAM,
    accounts: [
      { address: us, role: AccountRole.WRITABLE_SIGNER },
      { address: payer, role: AccountRole.WRITABLE },
    ],
    data: new Uint8Array(lamports),
  };
  const approving = getApproveInstruction({
    source: account,
    delegate: payer,
    owner: createNoopSigner(us),
    amount: 1n,
  });
  const handing = getSetAuthorityInstruction({
    owned: account,
    owner: createNoopSigner(us),
    authorityType: AuthorityType.AccountOwner,
    newAuthority: payer,
  });
  for (const more of [ofSol, approving, handing, await closing(us)])
    assert.match(String(await refusedFor([ours, more])), /more than to transfer/);
  for (const [instructions, why] of [
    [[ours, theirs], /not one transfer/],
    [[memo('x')], /not one transfer/],
    [[unitPrice(1n), ours], /no limit of units/],
    [[unitLimit(100_000), unitPrice(250_001n), ours], /too high a fee/],
    [[ours, ...Array.from({ length: 7 }, () => memo('x'))], /too many instructions/],
  ] as const)
    assert.match(String(await refusedFor(instructions)), why);
  assert.match(String(await refusedFor([ours], payer)), /another key pays/);
});

test('the signer process signs for the server, which verifies what it gets', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signer-'));
  const socket = join(folder, 'signer.sock');
  const signer = await startSigner(heldKey(privateKeyOf('refunds')), socket);
  try {
    const key = readSolanaKey(`signer:${socket}@${us}`);
    const message = await messageOf([ours]);
    assert.deepEqual(await key.sign(message), await keptHere(privateKeyOf('refunds')).sign(message));
    await assert.rejects(key.sign(await messageOf([ours, theirs])), /refused with 403/);
    await assert.rejects(key.sign(Buffer.from('no message')), /refused with 400/);
    await assert.rejects(readSolanaKey(`signer:${socket}@${payer}`).sign(message), /signed with another key/);
  } finally {
    await signer.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
