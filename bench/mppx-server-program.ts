/**
 * The opponent of (i): the reference library on Fastify, in its own order: it takes the money, then makes the answer.
 * It stores nothing. The library leaves settling to its user; here the relayer queue of the other opponents does it.
 */
import { randomBytes } from 'node:crypto';
import Fastify from 'fastify';
import { evm, Mppx } from 'mppx/server';
import { encodeFunctionData, formatUnits, getAddress, type Hex, isHex, parseAbi, parseSignature } from 'viem';
import type { MppxServerOptions } from './mppx-server.ts';
import { openRelayerQueue } from './relayer-queue.ts';

const options: MppxServerOptions = JSON.parse(process.env.BENCH_MPPX_SERVER ?? '{}');
const { path, description, terms } = options;
const answer: object = JSON.parse(options.answer);
const relayer = openRelayerQueue(options);
const TOKEN = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
]);

type SignedAuthorization = Record<
  'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce' | 'signature',
  string
>;

function hex(text: string): Hex {
  if (!isHex(text)) throw new Error('a credential that the library let through is not in hex');
  return text;
}

async function settle(signed: SignedAuthorization): Promise<{ reference: string }> {
  const { r, s, yParity } = parseSignature(hex(signed.signature));
  const data = encodeFunctionData({
    abi: TOKEN,
    functionName: 'transferWithAuthorization',
    args: [
      getAddress(signed.from),
      getAddress(signed.to),
      BigInt(signed.value),
      BigInt(signed.validAfter),
      BigInt(signed.validBefore),
      hex(signed.nonce),
      27 + yParity,
      r,
      s,
    ],
  });
  const hash = await relayer.send(terms.currency, data);
  const { status } = await relayer.client.waitForTransactionReceipt({ hash });
  if (status !== 'success') throw new Error(`the settlement ${hash} reverted`);
  return { reference: hash };
}

const payments = Mppx.create({
  secretKey: randomBytes(32).toString('hex'),
  methods: [
    evm.charge({
      currency: terms.currency,
      chainId: terms.chainId,
      decimals: terms.decimals,
      recipient: terms.recipient,
      authorization: { name: 'USD Coin', version: '2' },
      settle: ({ payload }) => settle(payload),
    }),
  ],
});
const charge = payments.charge({
  amount: formatUnits(BigInt(terms.amount), terms.decimals),
  description,
  scope: `POST ${path}`,
});

const app = Fastify();
app.post(path, async (request, reply) => {
  const charged = await charge(
    new Request(`${request.protocol}://${request.host}${request.url}`, {
      method: request.method,
      headers: new Headers(request.headers as Record<string, string>),
    }),
  );
  const response = charged.status === 402 ? charged.challenge : charged.withReceipt(Response.json(answer));
  return reply
    .code(response.status)
    .headers(Object.fromEntries(response.headers))
    .send(await response.text());
});
const url = await app.listen({ host: '127.0.0.1', port: 0 });

process.once('disconnect', () => process.exit(0));
process.on('SIGINT', () => {});
process.send?.({ url });
