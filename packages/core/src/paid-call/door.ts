import type { Problem } from '../http/problem.ts';
import { sandboxFields } from '../http/sandbox-notice.ts';
import type { Service } from '../service/define.ts';
import type { Challenge } from './challenge.ts';
import type { Quote } from './rail.ts';

/** A family of addresses that services are sold under, and the form of its answers. */
export interface Door {
  /** Such as `/x402`. */
  prefix: string;
  /** The name of a service as an MCP tool. Absent: the service is bought at an HTTP address below the prefix. */
  tool?(service: Service): string;
  /** Builds the 402 of a service; called again when a rail's offer changes. */
  challenge(quote: Quote): Challenge;
  /** On every 2xx answer. */
  headers: Readonly<Record<string, string>>;
  /** Fields that its answers have beside the service's own. */
  fields(timing: { startedAtMs: number; nowMs: number }): Record<string, unknown>;
  /** Turns an answer that is neither 2xx nor 402 into this door's form. */
  dress(
    problem: Problem,
    requestId: string,
  ): { headers: Record<string, string>; body: Record<string, unknown> };
}

/**
 * The same door, whose errors say where their code is told of, and whose every 402 begins with what a sandbox must say before
 * anybody pays.
 *
 * @param about.docUrlOf where a code is told of; null: nowhere
 */
export function doorOf(
  { sandbox, docUrlOf }: { sandbox: boolean; docUrlOf(code: string): string | null },
  door: Door,
): Door {
  const fields = sandboxFields(sandbox);
  const start = sandbox ? `${JSON.stringify(fields).slice(0, -1)},` : '{';
  const told = (code: string) => {
    const docUrl = docUrlOf(code);
    return docUrl === null ? {} : { docUrl };
  };
  const tell = <Answer extends { body: string }>(answer: Answer, code: string): Answer => {
    const docUrl = docUrlOf(code);
    const end = docUrl === null ? '}' : `,"docUrl":${JSON.stringify(docUrl)}}`;
    return { ...answer, body: `${start}${answer.body.slice(1, -1)}${end}` };
  };
  return {
    ...door,
    challenge(quote) {
      const challenge = door.challenge(quote);
      return {
        answer(request, refused) {
          const code = refused?.code ?? 'PAYMENT_REQUIRED';
          const answer = challenge.answer(request, refused);
          return answer instanceof Promise ? answer.then((each) => tell(each, code)) : tell(answer, code);
        },
      };
    },
    dress(problem, requestId) {
      const { headers, body } = door.dress(problem, requestId);
      const whole = { ...body, ...told(problem.code) };
      return { headers, body: problem.status === 402 ? { ...fields, ...whole } : whole };
    },
  };
}

/** `/x402/…`: prepaid credits and x402, errors in the house's own form. */
export function x402Door(challenge: (quote: Quote) => Challenge): Door {
  return {
    prefix: '/x402',
    challenge,
    headers: {},
    fields: () => ({}),
    dress: (problem, requestId) => ({
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: problem.body(requestId),
    }),
  };
}
