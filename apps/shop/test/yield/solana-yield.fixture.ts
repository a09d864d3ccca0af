/** For tests: a server whose portal is on the sandbox's Solana, and wallets on it that unmodified clients sign for. */
import assert from 'node:assert/strict';
import {
  createKeyPairSignerFromBytes,
  createSolanaRpc,
  createSolanaRpcSubscriptions,
  getBase64Encoder,
  getSignatureFromTransaction,
  getTransactionDecoder,
  type Signature,
  sendAndConfirmTransactionFactory,
  signTransaction,
} from '@solana/kit';
import {
  ComputeBudgetProgram,
  Connection,
  Keypair,
  PublicKey,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from '@solana/web3.js';
import type { Pools } from '../../../../packages/core/src/db/connection.ts';
import { SEED, signerOf } from '../../../../packages/sandbox/src/accounts.fixture.ts';
import { startSolana } from '../../../../packages/sandbox/src/solana/solana.ts';
import { jsonOf, startTestServer, type TestServerOptions } from '../server.fixture.ts';
import { solanaNode } from '../solana.fixture.ts';

export type SolanaYieldWorld = Awaited<ReturnType<typeof startSolanaYieldWorld>>;
export type SolanaWallet = Awaited<ReturnType<SolanaYieldWorld['wallet']>>;

/** Signs a transaction as it came, base64, and sends it. @returns its signature once it is confirmed */
type Client = (base64: string) => Promise<string>;

const LAMPORTS = 1_000_000_000;

/** @param environment further variables of the server */
export async function startSolanaYieldWorld(
  pools: Pools,
  environment: Record<string, string> = {},
  options: Pick<TestServerOptions, 'nowMs'> = {},
) {
  const chain = await startSolana({ stateDir: null, seed: SEED });
  const node = solanaNode(chain.url);
  const { address: treasury } = await signerOf('treasury');
  const server = await startTestServer({
    pools,
    ...options,
    environment: {
      UPSTREAM_SOLANA_BASE_URL: chain.url,
      SOLANA_YIELD_TREASURY: treasury,
      SOLANA_YIELD_SINCE_SLOT: '0',
      ...environment,
    },
  });
  const connection = new Connection(chain.url, { wsEndpoint: chain.wsUrl, commitment: 'confirmed' });
  const ask = (path: string, body?: object) =>
    fetch(`${server.url}/api/solana-yield/${path}`, {
      ...(body === undefined
        ? {}
        : { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });

  return {
    chain,
    node,
    treasury,
    server,
    connection,
    ask,
    /** The answer, which must be a 200. @param body what is posted; without it the address is read */
    async answer(path: string, body?: object) {
      const response = await ask(path, body);
      const told = await jsonOf(response);
      assert.equal(response.status, 200, `${path}: ${JSON.stringify(told)}`);
      return told;
    },
    /** A new wallet with so much USDC, and SOL for fees. */
    async wallet(usdcUnits: number) {
      const keypair = Keypair.generate();
      const signer = await createKeyPairSignerFromBytes(keypair.secretKey);
      await node.give(signer.address, { usdcUnits, lamports: LAMPORTS });
      return { keypair, signer, address: signer.address };
    },
    /** How `@solana/kit` does it, over HTTP and the websocket. */
    byKit({ signer }: { signer: Awaited<ReturnType<typeof createKeyPairSignerFromBytes>> }): Client {
      const rpc = createSolanaRpc(chain.url);
      const rpcSubscriptions = createSolanaRpcSubscriptions(chain.wsUrl);
      const sendAndConfirm = sendAndConfirmTransactionFactory({ rpc, rpcSubscriptions } as never);
      return async (base64) => {
        const transaction = getTransactionDecoder().decode(getBase64Encoder().encode(base64));
        const { value } = await rpc.getLatestBlockhash().send();
        const signed = await signTransaction([signer.keyPair], transaction);
        const { lastValidBlockHeight } = value;
        const lifetimeConstraint = { blockhash: blockhashIn(base64), lastValidBlockHeight };
        await sendAndConfirm({ ...signed, lifetimeConstraint } as never, { commitment: 'confirmed' });
        return getSignatureFromTransaction(signed) satisfies Signature;
      };
    },
    /** How `@solana/web3.js` 1 does it. */
    byWeb3({ keypair }: { keypair: Keypair }): Client {
      return (base64) =>
        sendByWeb3(connection, keypair, VersionedTransaction.deserialize(Buffer.from(base64, 'base64')));
    },
    /** A wallet that puts instructions of its own before, between and behind, and pays another price for work. */
    byMeddler({ keypair }: { keypair: Keypair }): Client {
      return async (base64) => {
        const { message } = VersionedTransaction.deserialize(Buffer.from(base64, 'base64'));
        const built = TransactionMessage.decompile(message).instructions;
        const acts = built.filter(({ programId }) => !programId.equals(ComputeBudgetProgram.programId));
        const instructions = [
          memoOf('before'),
          ComputeBudgetProgram.setComputeUnitPrice({ microLamports: 5_000 }),
          ComputeBudgetProgram.setComputeUnitLimit({ units: 400_000 }),
          ...acts.flatMap((each) => [each, memoOf('behind')]),
        ];
        const { blockhash } = await connection.getLatestBlockhash();
        const made = new TransactionMessage({
          payerKey: keypair.publicKey,
          recentBlockhash: blockhash,
          instructions,
        });
        return sendByWeb3(connection, keypair, new VersionedTransaction(made.compileToV0Message()));
      };
    },
    async stop() {
      await server.close();
      await chain.stop();
    },
  };
}

const MEMO_PROGRAM = new PublicKey('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr');

function memoOf(text: string): TransactionInstruction {
  return new TransactionInstruction({ programId: MEMO_PROGRAM, keys: [], data: Buffer.from(text) });
}

function blockhashIn(base64: string): string {
  return VersionedTransaction.deserialize(Buffer.from(base64, 'base64')).message.recentBlockhash;
}

async function sendByWeb3(
  connection: Connection,
  keypair: Keypair,
  transaction: VersionedTransaction,
): Promise<string> {
  transaction.sign([keypair]);
  const signature = await connection.sendTransaction(transaction);
  const { lastValidBlockHeight } = await connection.getLatestBlockhash();
  const { value } = await connection.confirmTransaction(
    { signature, blockhash: transaction.message.recentBlockhash, lastValidBlockHeight },
    'confirmed',
  );
  assert.equal(value.err, null, signature);
  return signature;
}
