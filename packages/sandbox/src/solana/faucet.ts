/** Hands out SOL and USDC by transactions of the faucet, so that its gifts are in the chain's history like other transfers. */

import { AccountRole, type Address, type Instruction, type KeyPairSigner } from '@solana/kit';
import {
  getCreateAssociatedTokenIdempotentInstruction,
  getMintToCheckedInstruction,
} from '@solana-program/token';
import { signerOf } from './accounts.ts';
import type { Bank } from './bank.ts';
import { usdcAccountOf } from './genesis.ts';
import { SYSTEM_PROGRAM, USDC_DECIMALS, USDC_MINT } from './programs.ts';
import { runSigned } from './run-signed.ts';

export interface Faucet {
  /**
   * Gives SOL (lamports) and USDC (base units, 10⁻⁶). Creates the receiver's account for USDC where it is missing.
   *
   * @returns the signature of the transaction
   * @throws RpcError −32603 if the transaction fails
   */
  give(to: Address, amounts: { lamports: bigint; usdcUnits: bigint }): Promise<string>;
}

export async function openFaucet(bank: Bank, seed: string): Promise<Faucet> {
  const signer = await signerOf(seed, 'faucet');
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
      return runSigned(bank, signer, 'faucet', instructions);
    },
  };
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
