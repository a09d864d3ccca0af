/** The answers of the paid call as results of tool calls. */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { aboutCall, asObject, x402ReceiptOf } from '../paid-call/about-call.ts';
import type { PaidAnswer } from '../paid-call/sale.ts';
import { mcpPaymentRequired, mcpReceipt } from '../rails/mpp/mcp.ts';
import type { Service } from '../service/define.ts';
import { fencedText, UNTRUSTED_META, untrustedIn, wordsOf } from '../service/untrusted.ts';
import type { Meta } from './payment.ts';

/** https://github.com/coinbase/x402/blob/main/specs/transports-v2/mcp.md */
const X402_RECEIPT = 'x402/payment-response';
/**
 * A result that every kind of client reads: a price as x402's transport has it, with MPP's challenges in `_meta`; an
 * answer as text and, where it is JSON, as `structuredContent`; an error as the JSON that HTTP would answer.
 *
 * @param meta `params._meta` of the call
 * @param service whose answer it is; null: one of ours, in which no outsider wrote
 */
export async function toolResultOf(
  answer: PaidAnswer,
  meta: Meta,
  service: Service | null,
): Promise<CallToolResult> {
  const { status, headers } = answer;
  if (status === 402) return unpaid(answer);
  const receipt = x402ReceiptOf(headers);
  const _meta = {
    ...(receipt === null ? {} : { [X402_RECEIPT]: receipt }),
    ...(await mcpReceipt(headers, meta)),
    'farebox/call': aboutCall(answer),
  };
  const json = jsonOf(answer);
  if (json !== null) {
    const structuredContent = asObject(json === '' ? {} : JSON.parse(json));
    const untrusted = service === null ? [] : untrustedIn(service, structuredContent, status);
    return {
      content: [{ type: 'text', text: fencedText(json, untrusted, wordsOf(headers['x-call-id'])) }],
      structuredContent,
      ...(status < 300 ? {} : { isError: true }),
      _meta: { ..._meta, ...(untrusted.length === 0 ? {} : { [UNTRUSTED_META]: untrusted }) },
    };
  }
  return { ...contentOf(answer), ...(status < 300 ? {} : { isError: true }), _meta };
}

async function unpaid({ headers, body }: PaidAnswer): Promise<CallToolResult> {
  const text = body.toString();
  const terms = JSON.parse(text);
  const _meta = await mcpPaymentRequired(headers, terms.last_error_reason ?? null);
  return {
    isError: true,
    structuredContent: terms,
    content: [{ type: 'text', text }],
    ...(_meta === null ? {} : { _meta }),
  };
}

const mediaTypeOf = ({ headers }: PaidAnswer) =>
  (headers['content-type'] ?? 'application/json').split(';')[0] ?? '';

/** The text of an answer that is JSON; null for any other. */
function jsonOf(answer: PaidAnswer): string | null {
  return mediaTypeOf(answer) === 'application/json' ? answer.body.toString() : null;
}

/** The content of an answer that is no JSON object. */
function contentOf(answer: PaidAnswer): Pick<CallToolResult, 'content'> {
  const { headers, body } = answer;
  const mimeType = mediaTypeOf(answer);
  const bytes = Buffer.from(body);
  const data = bytes.toString('base64');
  if (mimeType.startsWith('image/')) return { content: [{ type: 'image', data, mimeType }] };
  if (mimeType.startsWith('audio/')) return { content: [{ type: 'audio', data, mimeType }] };
  const uri = `farebox://calls/${headers['x-call-id'] ?? 'answer'}`;
  if (mimeType.startsWith('text/'))
    return { content: [{ type: 'resource', resource: { uri, mimeType, text: bytes.toString('utf8') } }] };
  return { content: [{ type: 'resource', resource: { uri, mimeType, blob: data } }] };
}
