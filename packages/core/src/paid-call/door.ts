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

/** The same door, whose every 402 begins with what a sandbox must say before anybody pays; itself where money is real. */
export function doorOf(sandbox: boolean, door: Door): Door {
  if (!sandbox) return door;
  const fields = sandboxFields(sandbox);
  const start = JSON.stringify(fields).slice(0, -1);
  const tell = <Answer extends { body: string }>(answer: Answer): Answer => ({
    ...answer,
    body: `${start},${answer.body.slice(1)}`,
  });
  return {
    ...door,
    challenge(quote) {
      const challenge = door.challenge(quote);
      return {
        answer(request, refused) {
          const answer = challenge.answer(request, refused);
          return answer instanceof Promise ? answer.then(tell) : tell(answer);
        },
      };
    },
    dress(problem, requestId) {
      const { headers, body } = door.dress(problem, requestId);
      return { headers, body: problem.status === 402 ? { ...fields, ...body } : body };
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
