import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Challenge, Mcp, Receipt } from 'mppx';
import { evm } from 'mppx/client';
import { McpClient } from 'mppx/mcp/client';
import { openTestDatabase, type TestDatabase } from '../../../test/database.fixture.ts';
import { METHODS, type MppWorld, startMppWorld } from '../../../test/mpp.fixture.ts';
import { startTestServer, type TestServer } from '../../../test/server.fixture.ts';
import { authorizationOfMcp, CREDENTIAL_META, mcpPaymentError, mcpReceipt, RECEIPT_META } from './mcp.ts';

interface ToolCall {
  name: string;
  arguments?: Record<string, unknown>;
  _meta?: Record<string, unknown>;
}

let world: MppWorld;
let database: TestDatabase;
let server: TestServer;
before(async () => {
  [world, database] = await Promise.all([startMppWorld(), openTestDatabase()]);
  server = await startTestServer({ pools: database, environment: world.environment });
});
after(async () => {
  await server?.close();
  await Promise.all([world?.stop(), database?.close()]);
});

/** A tool server of the thinnest kind: it translates, and lets the address of the service do everything else. */
const tools = {
  async callTool({ name, arguments: input = {}, _meta: meta }: ToolCall) {
    const authorization = authorizationOfMcp(meta);
    const answered = await fetch(`${server.url}/mpp/${name}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(authorization === null ? {} : { authorization }),
      },
      body: JSON.stringify(input),
    });
    const [headers, body] = [Object.fromEntries(answered.headers), await answered.text()];
    if (answered.status === 402) throw mcpPaymentError({ headers, body });
    const credential = meta?.[CREDENTIAL_META] as { challenge: { id: string } } | undefined;
    const receipt = mcpReceipt(headers, credential?.challenge.id ?? '');
    return {
      content: [{ type: 'text', text: body }],
      isError: answered.status >= 300,
      ...(receipt === null ? {} : { _meta: receipt }),
    };
  },
};

async function refused(call: ToolCall): Promise<ReturnType<typeof mcpPaymentError>> {
  return tools.callTool(call).then(
    () => assert.fail('it was not refused'),
    (error) => error,
  );
}

test('the names and codes are those of the reference library', () => {
  assert.deepEqual([CREDENTIAL_META, RECEIPT_META], [Mcp.credentialMetaKey, Mcp.receiptMetaKey]);
});

test('an unpaid call is the error that clients know, with challenges as objects', async () => {
  const error = await refused({ name: 'ping' });
  assert.ok(McpClient.isPaymentRequiredError(error));
  assert.deepEqual([error.code, error.data.httpStatus], [Mcp.paymentRequiredCode, 402]);
  const challenges = error.data.challenges.map((each) => Challenge.Schema.parse(each));
  assert.deepEqual(
    challenges.map(({ method, request }) => [method, request.amount]),
    METHODS.map((method) => [method, '250000']),
  );
  assert.equal(error.data.problem.type, 'https://paymentauth.org/problems/payment-required');
});

for (const method of METHODS) {
  test(`the MCP client of the reference library pays by ${method} and reads its receipt`, async () => {
    const account = await world.wallet();
    const client = McpClient.wrap({ ...tools } as never, {
      methods: world.client(account, method).methods as never,
    }) as unknown as {
      callTool(
        call: ToolCall,
      ): Promise<{ content: { text: string }[]; receipt?: Mcp.Receipt; _meta: unknown }>;
    };
    const received = await world.received(method);
    const result = await client.callTool({ name: 'ping', arguments: { message: 'by tool' } });
    const body: { echo: string } = JSON.parse(result.content[0]?.text ?? '');
    assert.equal(body.echo, 'by tool');
    assert.deepEqual([result.receipt?.method, result.receipt?.status], [method, 'success']);
    assert.match(result.receipt?.challengeId ?? '', /^[\w-]{43}$/);
    assert.match(result.receipt?.reference ?? '', /^0x[0-9a-f]{64}$/);
    assert.equal((await world.received(method)) - received, 250_000n);
  });
}

test('a credential that does not pay is the other error, with fresh challenges', async () => {
  const account = await world.wallet();
  const first = await refused({ name: 'ping', arguments: {} });
  const challenge = Challenge.Schema.parse(first.data.challenges[1]);
  const charge = evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } });
  const authorization = await charge.createCredential({ challenge } as never);
  assert.ok(authorization.startsWith('Payment '));
  const credential = JSON.parse(Buffer.from(authorization.slice(8), 'base64url').toString());
  const wrong = {
    ...credential,
    challenge: { ...challenge, request: { ...challenge.request, amount: '1' } },
  };
  const error = await refused({ name: 'ping', arguments: {}, _meta: { [CREDENTIAL_META]: wrong } });
  assert.equal(error.code, Mcp.paymentVerificationFailedCode);
  assert.ok(McpClient.isPaymentRequiredError(error));
  assert.ok(error.data.challenges.every((each) => Challenge.Schema.parse(each).id !== challenge.id));
});

test('a credential keeps its bytes through the translation', async () => {
  const account = await world.wallet();
  const unpaid = await fetch(`${server.url}/mpp/ping`, { method: 'POST' });
  const header = await world.credential(account, 'evm', unpaid);
  const error = mcpPaymentError({ headers: Object.fromEntries(unpaid.headers), body: await unpaid.text() });
  const charge = evm.charge({ account, authorization: { name: 'USD Coin', version: '2' } });
  const challenge = Challenge.Schema.parse(error.data.challenges[1]);
  const byMcp = await charge.createCredential({ challenge } as never);
  assert.equal(byMcp, header, 'EIP-3009 signatures over the same challenge are the same');
});

test('a call without a credential has none, and a malformed one is refused', () => {
  assert.equal(authorizationOfMcp(undefined), null);
  assert.equal(authorizationOfMcp({ other: 1 }), null);
  for (const credential of [null, 7, 'Payment abc', {}, { challenge: null }])
    assert.throws(() => authorizationOfMcp({ [CREDENTIAL_META]: credential }), JSON.stringify(credential));
});

test('only a 402 with a challenge becomes an error of payment; only a receipt becomes one', () => {
  assert.throws(() => mcpPaymentError({ headers: {}, body: '{}' }));
  assert.equal(mcpReceipt({}, 'x'), null);
  const receipt = Receipt.from({
    method: 'evm',
    reference: '0x1',
    status: 'success',
    timestamp: '2026-01-01T00:00:00Z',
  });
  assert.deepEqual(mcpReceipt({ 'payment-receipt': Receipt.serialize(receipt) }, 'abc'), {
    [RECEIPT_META]: { ...receipt, challengeId: 'abc' },
  });
});
