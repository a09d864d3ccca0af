/** The answers of the paid call as results of tool calls. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { PaidAnswer } from '../paid-call/sale.ts';
import { mcpPaymentRequired, mcpReceipt } from '../rails/mpp/mcp.ts';
import type { Meta } from './payment.ts';

/** https://github.com/coinbase/x402/blob/main/specs/transports-v2/mcp.md */
const X402_RECEIPT = 'x402/payment-response';
/** Headers of an answer that tell of the call and of its money: under these names in `farebox/call`. */
const TOLD: Readonly<Record<string, string>> = {
  'x-call-id': 'callId',
  'x-payment-method': 'paidBy',
  'x-credits-used': 'creditsUsedUsd',
  'x-credits-remaining': 'creditsRemainingUsd',
  'x-payment-transaction': 'transaction',
  'idempotent-replayed': 'replayed',
  'retry-after': 'retryAfterSeconds',
};

/**
 * A result that every kind of client reads: a price as x402's transport has it, with MPP's challenges in `_meta`; an
 * answer as text and, where it is JSON, as `structuredContent`; an error as the JSON that HTTP would answer.
 *
 * @param meta `params._meta` of the call
 */
export function toolResultOf(answer: PaidAnswer, meta: Meta): CallToolResult {
  const { status, headers } = answer;
  if (status === 402) return unpaid(answer);
  const _meta = { ...x402Receipt(headers), ...mcpReceipt(headers, meta), 'farebox/call': aboutCall(answer) };
  return { ...contentOf(answer), ...(status < 300 ? {} : { isError: true }), _meta };
}

function unpaid({ headers, body }: PaidAnswer): CallToolResult {
  const text = body.toString();
  const terms = JSON.parse(text);
  const _meta = mcpPaymentRequired(headers, terms.last_error_reason ?? null);
  return {
    isError: true,
    structuredContent: terms,
    content: [{ type: 'text', text }],
    ...(_meta === null ? {} : { _meta }),
  };
}

/** @throws never: what is no JSON object is content alone */
function contentOf({ headers, body }: PaidAnswer): Pick<CallToolResult, 'content' | 'structuredContent'> {
  const [mimeType = ''] = (headers['content-type'] ?? 'application/json').split(';');
  if (mimeType === 'application/json') {
    const text = body.toString();
    return { content: [{ type: 'text', text }], structuredContent: text === '' ? {} : JSON.parse(text) };
  }
  const bytes = Buffer.from(body);
  const data = bytes.toString('base64');
  if (mimeType.startsWith('image/')) return { content: [{ type: 'image', data, mimeType }] };
  if (mimeType.startsWith('audio/')) return { content: [{ type: 'audio', data, mimeType }] };
  const uri = `farebox://calls/${headers['x-call-id'] ?? 'answer'}`;
  if (mimeType.startsWith('text/'))
    return { content: [{ type: 'resource', resource: { uri, mimeType, text: bytes.toString('utf8') } }] };
  return { content: [{ type: 'resource', resource: { uri, mimeType, blob: data } }] };
}

function x402Receipt(headers: Readonly<Record<string, string>>): Record<string, unknown> {
  const receipt = headers['payment-response'] ?? headers['x-payment-response'];
  if (receipt === undefined) return {};
  return { [X402_RECEIPT]: JSON.parse(Buffer.from(receipt, 'base64').toString('utf8')) };
}

/** What HTTP would say beside the body. */
function aboutCall({ status, headers }: PaidAnswer): Record<string, unknown> {
  const told: Record<string, unknown> = { status };
  for (const [header, name] of Object.entries(TOLD)) {
    if (headers[header] !== undefined) told[name] = headers[header];
  }
  const provenance = headers['x-provenance'];
  return provenance === undefined ? told : { ...told, provenance: JSON.parse(provenance) };
}
