/** Reads what an x402 payer is told, and asserts what must hold of it on every chain. */
import assert from 'node:assert/strict';
import type { Told as AnyTold } from './fault-table.fixture.ts';

/** The answer that the payer holds after one request. */
export interface Told extends AnyTold {
  /** The header that was sent. */
  presented: string;
  /** Where the money moved, as the answer says; null when it does not. */
  transaction: string | null;
  /** Whether a receipt came in the protocol's own header. */
  hasReceipt: boolean;
}

/** @param presented the header that was sent */
export async function toldOf(response: Response, presented: string): Promise<Told> {
  const body = await response.text();
  const { status, headers } = response;
  const said: { code?: string; last_error_reason?: { code?: string } } = JSON.parse(body);
  const code = said.last_error_reason?.code ?? said.code ?? null;
  const again = headers.get('idempotent-replayed') === 'true';
  const receipt = headers.get('payment-response') ?? headers.get('x-payment-response');
  const { transaction = headers.get('x-payment-transaction') }: { transaction?: string | null } =
    receipt === null ? {} : JSON.parse(Buffer.from(receipt, 'base64').toString('utf8'));
  const text = [String(status), ...(code === null ? [] : [code]), ...(again ? ['again'] : [])].join(' ');
  return {
    presented,
    status,
    text,
    body,
    headers,
    transaction: transaction || null,
    hasReceipt: receipt !== null,
  };
}

/** Asserts what must hold of every answer, but for what only its chain can say. */
export function assertProperX402(told: Told): void {
  assert.doesNotMatch(
    told.body,
    /\b(?:viem|FiatToken|ERC20:|ECONN|postgres)|at \S+ \(/i,
    'inner text got out',
  );
  if (told.status === 200) {
    assert.match(told.headers.get('cache-control') ?? '', /private/);
    assert(told.transaction !== null, 'no transaction');
  } else if (told.status === 402) {
    // Where no chain can settle now nothing but credit is offered.
    const { accepts }: { accepts: { scheme: string }[] } = JSON.parse(told.body);
    const isOffered = accepts.some(({ scheme }) => scheme === 'exact');
    assert.equal(told.headers.has('payment-required'), isOffered, 'a challenge goes with what is offered');
    const refused: { success: boolean; errorReason: string } = JSON.parse(
      Buffer.from(told.headers.get('payment-response') ?? '', 'base64').toString('utf8'),
    );
    assert.deepEqual([refused.success, `402 ${refused.errorReason}`], [false, told.text]);
  } else {
    assert(!told.headers.has('payment-required'), `${told.text} invites to pay again`);
    if (told.status === 503) assert(Number(told.headers.get('retry-after')) >= 1, 'no Retry-After');
  }
}
