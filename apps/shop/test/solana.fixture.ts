/** What a wallet signs to pay on Solana, made by hand so that tests can sign what no client would; and a way to its node. */
import {
  type Address,
  appendTransactionMessageInstructions,
  type Blockhash,
  compileTransaction,
  createNoopSigner,
  createTransactionMessage,
  getBase58Decoder,
  getBase64EncodedWireTransaction,
  type Instruction,
  type KeyPairSigner,
  partiallySignTransaction,
  pipe,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
} from '@solana/kit';
import { getCloseAccountInstruction, getTransferCheckedInstruction } from '@solana-program/token';
import { tokenAccountOf } from '../../../packages/core/src/rails/x402/solana-programs.ts';
import { USDC_MINT } from '../../../packages/sandbox/src/solana/programs.ts';

const COMPUTE_BUDGET = 'ComputeBudget111111111111111111111111111111' as Address;
const MEMO_PROGRAM = 'MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr' as Address;

export function unitLimit(units: number): Instruction {
  const data = Buffer.alloc(5, 2);
  data.writeUInt32LE(units, 1);
  return { programAddress: COMPUTE_BUDGET, data: new Uint8Array(data) };
}

/** @param microLamports for each compute unit */
export function unitPrice(microLamports: bigint): Instruction {
  const data = Buffer.alloc(9, 3);
  data.writeBigUInt64LE(microLamports, 1);
  return { programAddress: COMPUTE_BUDGET, data: new Uint8Array(data) };
}

export function memo(text: string): Instruction {
  return { programAddress: MEMO_PROGRAM, data: new TextEncoder().encode(text) };
}

export async function transferOf(payer: Address, payTo: string, units: bigint): Promise<Instruction> {
  return getTransferCheckedInstruction({
    source: (await tokenAccountOf(payer, USDC_MINT)) as Address,
    mint: USDC_MINT,
    destination: (await tokenAccountOf(payTo, USDC_MINT)) as Address,
    authority: createNoopSigner(payer),
    amount: units,
    decimals: 6,
  });
}

/** Closes an owner's USDC account, which must be empty. */
export async function closing(owner: Address): Promise<Instruction> {
  return getCloseAccountInstruction({
    account: (await tokenAccountOf(owner, USDC_MINT)) as Address,
    destination: owner,
    owner: createNoopSigner(owner),
  });
}

/** A transaction with these signatures. @returns base64, and its own signature once its fee payer has signed */
export async function signTransaction(
  instructions: readonly Instruction[],
  terms: { feePayer: string; blockhash: string; signers: readonly KeyPairSigner[] },
): Promise<{ wire: string; signature: string | null }> {
  const message = pipe(
    createTransactionMessage({ version: 0 }),
    (each) => setTransactionMessageFeePayer(terms.feePayer as Address, each),
    (each) =>
      setTransactionMessageLifetimeUsingBlockhash(
        { blockhash: terms.blockhash as Blockhash, lastValidBlockHeight: 1n },
        each,
      ),
    (each) => appendTransactionMessageInstructions(instructions, each),
  );
  const signed = await partiallySignTransaction(
    terms.signers.map(({ keyPair }) => keyPair),
    compileTransaction(message),
  );
  const own = signed.signatures[terms.feePayer as Address] ?? null;
  return {
    wire: getBase64EncodedWireTransaction(signed),
    signature: own === null ? null : getBase58Decoder().decode(own),
  };
}

/** A way to the sandbox's Solana. */
export function solanaNode(url: string) {
  async function ask<Result>(method: string, ...params: unknown[]): Promise<Result> {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    const reply: { result: Result; error?: { message: string } } = JSON.parse(await response.text());
    if (reply.error !== undefined) throw new Error(`${method}: ${reply.error.message}`);
    return reply.result;
  }
  return {
    ask,
    give: (to: string, gift: { usdcUnits?: number; lamports?: number }) =>
      ask<string>('sandbox_fund', to, gift),
    async blockhash(): Promise<string> {
      const { value } = await ask<{ value: { blockhash: string } }>('getLatestBlockhash', {
        commitment: 'confirmed',
      });
      return value.blockhash;
    },
    /** So many slots pass at once. */
    pass: (slots: number) => ask<number>('sandbox_advanceSlots', slots),
    send: (wire: string) => ask<string>('sendTransaction', wire, { encoding: 'base64', skipPreflight: true }),
    /** USDC in base units; 0 without an account. */
    async holds(owner: string): Promise<bigint> {
      const account = await tokenAccountOf(owner, USDC_MINT);
      const found = await ask<{ value: { amount: string } }>('getTokenAccountBalance', account).catch(
        () => null,
      );
      return BigInt(found?.value.amount ?? 0);
    },
    async lamports(address: string): Promise<number> {
      return (await ask<{ value: number }>('getBalance', address)).value;
    },
  };
}
