/** Turns an answer of the paid call into the end of the task that it was bought for. */
import { aboutCall, x402ReceiptOf } from '../paid-call/about-call.ts';
import type { PaidAnswer } from '../paid-call/sale.ts';
import type { Service } from '../service/define.ts';
import { fencedLine, UNTRUSTED_META, untrustedIn } from '../service/untrusted.ts';
import { type Credential, X402 } from './messages.ts';
import type { Ending, StatusMessage } from './tasks.ts';

/** Short codes of the x402 extension of A2A, for the reasons of the house. */
const ERRORS: Readonly<Record<string, string>> = {
  PAYMENT_INSUFFICIENT_FUNDS: 'INSUFFICIENT_FUNDS',
  PAYMENT_SIGNATURE_INVALID: 'INVALID_SIGNATURE',
  PAYMENT_EXPIRED: 'EXPIRED_PAYMENT',
  PAYMENT_AUTHORIZATION_USED: 'DUPLICATE_NONCE',
  PAYMENT_NETWORK_UNSUPPORTED: 'NETWORK_MISMATCH',
  PAYMENT_AMOUNT_MISMATCH: 'INVALID_AMOUNT',
};
/** The size of a status's metadata: sources of an answer that cannot name them itself may be many. */
const MAX_CALL_CHARACTERS = 8_000;

interface ErrorBody {
  code: string;
  message: string;
  charged?: boolean | null;
  last_error_reason?: { code: string; message: string };
}

/** The error of a task that its caller left: it is read when the task is asked for later. */
const LEFT: ErrorBody = {
  code: 'CALLER_GONE',
  message:
    'The caller left while the payment was on its way. It is not known yet whether it was charged: send the same message again, and it is charged at most once.',
  charged: null,
};

/** @param wasKept its payment may have been taken before this piece of work */
export function endingOf(answer: PaidAnswer, credential: Credential, wasKept: boolean): Ending {
  const isRepeat = answer.headers['idempotent-replayed'] !== undefined;
  return { ...stateAfter(answer, credential, wasKept), isRepeat };
}

/** Names in the metadata of an ending what its data may quote of outsiders, and fences it in its text. @param status of the answer */
export function namingOutsiders(ending: Ending, service: Service, status: number): Ending {
  const { statusMessage } = ending;
  const untrusted = statusMessage?.data === undefined ? [] : untrustedIn(service, statusMessage.data, status);
  if (statusMessage === null || untrusted.length === 0) return ending;
  const metadata = { ...statusMessage.metadata, [UNTRUSTED_META]: untrusted };
  const isQuoting = statusMessage.text !== undefined && untrusted.includes('/message');
  const text = isQuoting ? { text: fencedLine(statusMessage.text ?? '') } : {};
  return { ...ending, statusMessage: { ...statusMessage, ...text, metadata } };
}

function stateAfter(answer: PaidAnswer, credential: Credential, wasKept: boolean): Omit<Ending, 'isRepeat'> {
  const { status, fate } = answer;
  if (status === 499 && fate === 'free') {
    const text = 'The caller left before anything was done. Nothing was charged.';
    return { state: 'failed', statusMessage: { text }, call: null, keepsPayment: false };
  }
  if (status < 300) return completed(answer, credential);
  const body: ErrorBody = status === 499 ? LEFT : JSON.parse(answer.body.toString());
  const call = { 'farebox/call': aboutCall(answer) };
  // A refused x402 payment was looked up among those that bought something.
  const isLooked = fate !== 'not looked' || (status === 402 && credential.by === 'x402');
  if (wasKept && !isLooked && body.charged !== null) return stillOpen(body, credential, call);
  if (status === 402) return unpaid(body, credential, call);
  const statusMessage = (payment: string): StatusMessage => ({
    text: body.message,
    data: { ...body },
    metadata: {
      ...(credential.by === 'x402' ? { [X402.status]: payment } : {}),
      ...(credential.by === 'x402' && payment === 'payment-failed' ? failure(body.code, credential) : {}),
      ...call,
    },
  });
  const { charged = null } = body;
  if (status === 400 && charged === false)
    return {
      state: 'input-required',
      statusMessage: statusMessage('payment-submitted'),
      call: null,
      keepsPayment: false,
    };
  // The money may have moved, so nobody is told that this is over: the same message gets the answer.
  if (charged !== false && status !== 409)
    return {
      state: 'input-required',
      statusMessage: statusMessage('payment-submitted'),
      call: null,
      keepsPayment: true,
    };
  // A 409 that was charged is of an answer that is not kept any more.
  const payment = charged === false ? 'payment-failed' : 'payment-completed';
  return { state: 'failed', statusMessage: statusMessage(payment), call: null, keepsPayment: false };
}

/** Keeps a task open when a message is wrong, which says nothing of the payment that came before it. */
function stillOpen(
  body: ErrorBody,
  credential: Credential,
  call: Record<string, unknown>,
): Omit<Ending, 'isRepeat'> {
  const text = `This message did not go on with the payment that came before: ${body.message} That is said of this message alone. It is not known yet whether the payment was charged: send the message that carried it first again.`;
  const metadata = { ...(credential.by === 'x402' ? { [X402.status]: 'payment-submitted' } : {}), ...call };
  const statusMessage = { text, data: { ...body, message: text, charged: null }, metadata };
  return { state: 'input-required', statusMessage, call: null, keepsPayment: true };
}

function completed(answer: PaidAnswer, credential: Credential): Omit<Ending, 'isRepeat'> {
  const { headers, accountId } = answer;
  const id = headers['x-call-id'];
  if (accountId === undefined || id === undefined) throw new Error('an answer was bought by nobody');
  const receipt = x402ReceiptOf(headers);
  const { provenance, replayed: _again, ...about } = aboutCall(answer);
  const fits = JSON.stringify(provenance ?? null).length <= MAX_CALL_CHARACTERS;
  const metadata = {
    ...(credential.by === 'x402'
      ? { [X402.status]: 'payment-completed', [X402.receipts]: receipt === null ? [] : [receipt] }
      : {}),
    'farebox/call': { ...about, ...(provenance !== undefined && fits ? { provenance } : {}) },
  };
  return { state: 'completed', statusMessage: { metadata }, call: { accountId, id }, keepsPayment: true };
}

/** A payment of x402 that does not pay ends its task; who has a key may still pay otherwise. */
function unpaid(
  body: ErrorBody,
  credential: Credential,
  call: Record<string, unknown>,
): Omit<Ending, 'isRepeat'> {
  const refused = body.last_error_reason ?? { code: body.code, message: body.message };
  if (credential.by === 'key')
    return { state: 'input-required', statusMessage: { refused }, call: null, keepsPayment: false };
  const metadata = { [X402.status]: 'payment-failed', ...failure(refused.code, credential), ...call };
  const text = `${body.message} Nothing was charged. A new message without taskId begins anew.`;
  const data = { code: refused.code, message: body.message, charged: false, last_error_reason: refused };
  return { state: 'failed', statusMessage: { text, data, metadata }, call: null, keepsPayment: false };
}

function failure(code: string, { network }: Credential): Record<string, unknown> {
  const receipt = { success: false, errorReason: code, network: network ?? '', transaction: '' };
  return { [X402.error]: ERRORS[code] ?? code, [X402.receipts]: [receipt] };
}
