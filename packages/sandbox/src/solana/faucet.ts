/** Hands out SOL and USDC by transactions of the faucet, so that what it gave stands in the chain like all else. */

import {
  AccountRole,
  type Address,
  appendTransactionMessageInstructions,
  blockhash,
  createTransactionMessage,
  getTransactionEncoder,
  type Instruction,
  type KeyPairSigner,
  setTransactionMessageFeePayerSigner,
  setTransactionMessageLifetimeUsingBlockhash,
  signTransactionMessageWithSigners,
} from '@solana/kit';
import {
  getCreateAssociatedTokenIdempotentInstruction,
  getMintToCheckedInstruction,
} from '@solana-program/token';
import { signerOf } from './accounts.ts';
import type { Bank } from './bank.ts';
import { usdcAccountOf } from './genesis.ts';
import { RpcError } from './json-rpc.ts';
import { MEMO_PROGRAM, SYSTEM_PROGRAM, USDC_DECIMALS, USDC_MINT } from './programs.ts';
import { BLOCKHASH_SLOTS } from './slots.ts';
import { textOf } from './transaction-error.ts';
import { decodeTransaction } from './wire-transaction.ts';

export interface Faucet {
  /**
   * Gives SOL (lamports) and USDC (base units, 10⁻⁶); with USDC goes the account that holds it.
   *
   * @returns the signature of the transaction
   * @throws RpcError −32603 if the transaction fails
   */
  give(to: Address, amounts: { lamports: bigint; usdcUnits: bigint }): Promise<string>;
}

export async function openFaucet(bank: Bank, seed: string): Promise<Faucet> {
  const signer = await signerOf(seed, 'faucet');
  let given = 0;
  return {
    async give(to, { lamports, usdcUnits }) {
      const instructions: Instruction[] = [];
      if (lamports > 0n) instructions.push(transferSol(signer, to, lamports));
      if (usdcUnits > 0n) {
        const ata = await usdcAccountOf(to);
        instructions.push(
          getCreateAssociatedTokenIdempotentInstruction({ payer: signer, ata, owner: to, mint: USDC_MINT }),
          getMintToCheckedInstruction({
            mint: USDC_MINT,
            token: ata,
            mintAuthority: signer,
            amount: usdcUnits,
            decimals: USDC_DECIMALS,
          }),
        );
      }
      // Two gifts of one size within one slot would be one transaction without it.
      given += 1;
      const text = `sandbox faucet ${Date.now()} ${given}`;
      instructions.push({ programAddress: MEMO_PROGRAM, data: new TextEncoder().encode(text) });
      return run(instructions);
    },
  };

  async function run(instructions: readonly Instruction[]): Promise<string> {
    const slot = bank.clock.slot();
    const lifetime = {
      blockhash: blockhash(bank.clock.blockhashOf(slot)),
      lastValidBlockHeight: BigInt(bank.clock.blockHeightOf(slot) + BLOCKHASH_SLOTS),
    };
    const empty = setTransactionMessageFeePayerSigner(signer, createTransactionMessage({ version: 0 }));
    const message = appendTransactionMessageInstructions(
      instructions,
      setTransactionMessageLifetimeUsingBlockhash(lifetime, empty),
    );
    const signed = await signTransactionMessageWithSigners(message);
    const landed = bank.land(decodeTransaction(new Uint8Array(getTransactionEncoder().encode(signed))));
    if (landed === null || landed.err !== null)
      throw new RpcError(
        -32603,
        `the faucet failed: ${landed?.err ? textOf(landed.err) : 'it did not land'}`,
      );
    return landed.signature;
  }
}

function transferSol(from: KeyPairSigner, to: Address, lamports: bigint): Instruction {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(2, 0);
  data.writeBigUInt64LE(lamports, 4);
  return {
    programAddress: SYSTEM_PROGRAM,
    accounts: [
      { address: from.address, role: AccountRole.WRITABLE_SIGNER },
      { address: to, role: AccountRole.WRITABLE },
    ],
    data: new Uint8Array(data),
  };
}
