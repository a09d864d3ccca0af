/** Keys that are kept elsewhere: AWS KMS, spoken to by its official client, and a signer process. Both may lie. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { after, before, test } from 'node:test';
import { secp256k1 } from '@noble/curves/secp256k1';
import { hexToBytes, recoverTransactionAddress, serializeTransaction } from 'viem';
import { generatePrivateKey } from 'viem/accounts';
import { Transaction } from 'viem/tempo';
import { privateKeyOf } from '../../../sandbox/src/accounts.fixture.ts';
import { heldKey } from '../rails/x402/held-key.ts';
import { keptHere, readSolanaKey } from '../rails/x402/solana-key.ts';
import { addressOf, createSigner, type EvmKey } from './sign.ts';
import { startSigner } from './signer-process.ts';

const KEY = generatePrivateKey();
const KEY_ID = 'arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab';
const TRANSACTION = {
  type: 'eip1559',
  chainId: 8453,
  nonce: 7,
  to: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
  data: '0xcf092995',
  gas: 120_000n,
  maxFeePerGas: 10n ** 9n,
  maxPriorityFeePerGas: 10n ** 6n,
} as const;

const TEMPO = {
  type: 'tempo',
  chainId: 4217,
  calls: [{ to: '0x20C000000000000000000000b9537d11c60E8b50', data: '0xa9059cbb' }],
  nonceKey: 5n,
  nonce: 0,
  gas: 2_000_000n,
  maxFeePerGas: 10n ** 9n,
  maxPriorityFeePerGas: 0n,
} as const;
type Hex = `0x${string}`;

let folder: string;
let kms: Server;
/** What the double of KMS was asked for. */
const asked: { target: unknown; body: Record<string, string> }[] = [];
/** Which of the two signatures of everything it gives. */
let isUpperHalf = false;
let refusal: string | null = null;
let isSilent = false;
/** The key that signs by Ed25519 in the double of KMS. */
let solanaKeySigned = privateKeyOf('settler');

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'signer-'));
  kms = createServer(async (request, reply) => {
    let text = '';
    for await (const bytes of request) text += bytes;
    const body = JSON.parse(text);
    asked.push({ target: request.headers['x-amz-target'], body });
    reply.setHeader('content-type', 'application/x-amz-json-1.1');
    if (isSilent) return;
    if (refusal !== null) return reply.writeHead(400).end(JSON.stringify({ __type: refusal, message: 'no' }));
    if (body.SigningAlgorithm === 'ED25519_SHA_512') {
      const signed = await keptHere(solanaKeySigned).sign(Buffer.from(body.Message, 'base64'));
      return reply.end(
        JSON.stringify({ KeyId: body.KeyId, Signature: Buffer.from(signed).toString('base64') }),
      );
    }
    const signature = secp256k1.sign(Buffer.from(body.Message, 'base64'), hexToBytes(KEY));
    const { n } = secp256k1.CURVE;
    const s = isUpperHalf ? n - signature.s : signature.s;
    const der = new secp256k1.Signature(signature.r, s).toDERRawBytes();
    reply.end(JSON.stringify({ KeyId: body.KeyId, Signature: Buffer.from(der).toString('base64') }));
  });
  await new Promise<void>((resolve) => kms.listen(0, '127.0.0.1', resolve));
  // The official client finds these by itself.
  env.AWS_ENDPOINT_URL_KMS = `http://127.0.0.1:${(kms.address() as AddressInfo).port}`;
  env.AWS_ACCESS_KEY_ID = 'AKIAIOSFODNN7EXAMPLE';
  env.AWS_SECRET_ACCESS_KEY = 'a-secret-of-the-tests';
});
after(() => {
  kms?.closeAllConnections();
  kms?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function assertSigned(key: EvmKey): Promise<void> {
  const { raw } = await createSigner(key).sign(TRANSACTION);
  const by = await recoverTransactionAddress({ serializedTransaction: raw as `0x02${string}` });
  assert.equal(by.toLowerCase(), addressOf(KEY));
  // Here the same key signs the same, and chains take only the lower half.
  assert.equal(raw, (await createSigner(KEY).sign(TRANSACTION)).raw);
}

test('AWS KMS signs the digest, and either of its signatures becomes the one that chains take', async () => {
  for (isUpperHalf of [false, true]) await assertSigned(`aws-kms:${KEY_ID}@${addressOf(KEY)}`);
  const [first] = asked;
  assert.equal(first?.target, 'TrentService.Sign');
  assert.deepEqual(
    [first?.body.KeyId, first?.body.MessageType, first?.body.SigningAlgorithm],
    [KEY_ID, 'DIGEST', 'ECDSA_SHA_256'],
  );
});

test('what another key signed is not sent, and what KMS refuses is an error', async () => {
  const other = addressOf(generatePrivateKey());
  await assert.rejects(
    createSigner(`aws-kms:${KEY_ID}@${other}`).sign(TRANSACTION),
    /signed with another key/,
  );
  refusal = 'DisabledException';
  await assert.rejects(createSigner(`aws-kms:${KEY_ID}@${addressOf(KEY)}`).sign(TRANSACTION), {
    name: 'DisabledException',
  });
  refusal = null;
});

test('KMS signs for Solana by Ed25519 the whole message, and what another key signed is not sent', async () => {
  const here = keptHere(privateKeyOf('settler'));
  const message = Buffer.from('a message of Solana');
  const key = readSolanaKey(`aws-kms:${KEY_ID}@${here.address}`);
  assert.equal(key.address, here.address);
  assert.deepEqual(await key.sign(message), await here.sign(message));
  const { body } = asked.at(-1) ?? {};
  assert.deepEqual(
    [body?.KeyId, body?.MessageType, body?.SigningAlgorithm, body?.Message],
    [KEY_ID, 'RAW', 'ED25519_SHA_512', message.toString('base64')],
  );
  solanaKeySigned = privateKeyOf('refunds');
  await assert.rejects(key.sign(message), /signed with another key/);
  solanaKeySigned = privateKeyOf('settler');
});

test('a signer that never answers is an error within its time, wherever it is', async () => {
  const here = keptHere(privateKeyOf('settler'));
  const silent = createServer(() => undefined);
  const socket = join(folder, 'silent.sock');
  await new Promise<void>((resolve) => silent.listen(socket, resolve));
  isSilent = true;
  try {
    const places = [`aws-kms:${KEY_ID}`, `signer:${socket}`] as const;
    await Promise.all(
      places.flatMap((place) => [
        assert.rejects(createSigner(`${place}@${addressOf(KEY)}`).sign(TRANSACTION)),
        assert.rejects(readSolanaKey(`${place}@${here.address}`).sign(Buffer.from('x'))),
      ]),
    );
  } finally {
    isSilent = false;
    silent.closeAllConnections();
    silent.close();
  }
  // It is asked again, and not given up for good.
  await assertSigned(`aws-kms:${KEY_ID}@${addressOf(KEY)}`);
});

test('a signer process signs what a settler sends and nothing else, for its own system user', async () => {
  const socket = join(folder, 'signer.sock');
  const signer = await startSigner(heldKey(KEY), socket);
  try {
    assert.equal(statSync(socket).mode & 0o777, 0o600);
    const key: EvmKey = `signer:${socket}@${addressOf(KEY)}`;
    await assertSigned(key);
    const refused = (change: object) =>
      assert.rejects(createSigner(key).sign({ ...TRANSACTION, ...change }), /the signer refused with 403/);
    await refused({ value: 1n });
    await refused({ to: undefined });
    await refused({ gas: 5_000_001n });
    const other: EvmKey = `signer:${socket}@${addressOf(generatePrivateKey())}`;
    await assert.rejects(createSigner(other).sign(TRANSACTION), /signed with another key/);
    const unsigned = async (change: object) =>
      createSigner(key).signatureOf((await Transaction.serialize({ ...TEMPO, ...change } as never)) as Hex);
    const { r } = await unsigned({});
    assert.match(r, /^0x[0-9a-f]{64}$/);
    const refusedOnTempo = (change: object) =>
      assert.rejects(unsigned(change), /the signer refused with 403/, JSON.stringify(Object.keys(change)));
    const [call] = TEMPO.calls;
    await refusedOnTempo({ calls: [call, call] });
    await refusedOnTempo({ calls: [{ ...call, value: 1n }] });
    await refusedOnTempo({ calls: [{ data: '0x6000' }] });
    await refusedOnTempo({ gas: 5_000_001n });
    const garbage = await fetchAt(socket, serializeTransaction(TRANSACTION).slice(0, 20));
    assert.equal(garbage, 400);
  } finally {
    await signer.close();
  }
  await assert.rejects(createSigner(`signer:${socket}@${addressOf(KEY)}`).sign(TRANSACTION));
});

async function fetchAt(socketPath: string, body: string): Promise<number | undefined> {
  const { request } = await import('node:http');
  return new Promise((resolve, reject) => {
    const asking = request({ socketPath, path: '/sign', method: 'POST' }, (reply) => {
      reply.resume();
      resolve(reply.statusCode);
    });
    asking.on('error', reject);
    asking.end(body);
  });
}
