import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MinedTransaction } from './node-reply.ts';
import type { Relayer } from './relayer.ts';
import { senderOf } from './sender.ts';
import { OutOfGas } from './to-send.ts';

const TO_SEND = { id: 'the-first', to: '0x1', data: '0x' } as const;

/** A sender over a relayer that ends so. */
function over(send: () => Promise<MinedTransaction | null>) {
  const sent: [string, number][] = [];
  const relayer: Partial<Relayer> = {
    addresses: ['0xa'],
    send: ({ id }, timeoutMs) => {
      sent.push([id, timeoutMs]);
      return send();
    },
  };
  return { sent, sender: senderOf(relayer as Relayer, 30_000) };
}

test('what is not mined in time is told as pending, and goes on under the same id', async () => {
  const { sent, sender } = over(async () => null);
  for (let time = 0; time < 2; time++)
    await assert.rejects(sender.send(TO_SEND), { status: 503, code: 'TRANSACTION_PENDING' });
  assert.deepEqual(sent, [
    ['the-first', 30_000],
    ['the-first', 30_000],
  ]);
});

test('a key without gas is told as that, and any other fault as it is', async () => {
  const poor = over(() => Promise.reject(new OutOfGas('0xa')));
  await assert.rejects(poor.sender.send(TO_SEND), { status: 503, code: 'OUT_OF_GAS' });
  const broken = over(() => Promise.reject(new Error('the node is on fire')));
  await assert.rejects(broken.sender.send(TO_SEND), /the node is on fire/);
});

test('a sender needs a key', () => {
  assert.throws(() => senderOf({ addresses: [] } as unknown as Relayer, 1), /needs a key/);
});
