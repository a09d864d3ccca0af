/** A task as its caller sees it: its answer from where answers are kept, its price as it is now. */
import { asObject } from '../paid-call/about-call.ts';
import type { MadeAnswer, PaidAnswer, PaidRequest } from '../paid-call/sale.ts';
import type { Service } from '../service/define.ts';
import type { Shelf } from '../service/shelf.ts';
import { UNTRUSTED_META, untrustedIn, untrustedPathsOf } from '../service/untrusted.ts';
import { eventsOf } from './events.ts';
import { X402 } from './messages.ts';
import type { StatusMessage, Task } from './tasks.ts';
import type { Part, ShownArtifact, ShownTask } from './wire.ts';

const UNKNOWN_TEXT =
  'Whoever worked on this task has stopped. It is not known yet whether its payment was charged. Send the same message again, with the same messageId and the same payment: it is charged at most once.';
const UNKNOWN: StatusMessage = {
  text: UNKNOWN_TEXT,
  data: { code: 'OUTCOME_UNKNOWN', message: UNKNOWN_TEXT, charged: null },
};
const BY_CLAIM =
  'The answer holds a secret, so it is not shown to whoever knows this task. Send the same message again, with the same payment and the same input: it is not charged again.';
const PRICE_BY_TASK = 'It waits for its payment. Ask for the task to be told its price.';
const NOT_KEPT = 'The answer of this task is not kept any more.';

/** The caller, as the paid call counts callers. */
export type AskedBy = Pick<PaidRequest, 'address' | 'requestId'>;

export interface ShowingParts {
  paidCall: {
    handle(request: PaidRequest): Promise<PaidAnswer>;
    answerOf(accountId: bigint, callId: string): Promise<MadeAnswer | null>;
  };
  shelf: Pick<Shelf, 'find' | 'gone'>;
  nowMs(): number;
}

/** Whether an answer may hold a secret and its task belongs to whoever knows its id: only the payment's claim opens it then. */
export function isShownByClaim({ accountId }: Task, service: Service | undefined): boolean {
  return accountId === null && service?.secretAnswer !== false;
}

/** The service that a task bought, also when it is sold no more. */
export function serviceOf(
  shelf: Pick<Shelf, 'find' | 'gone'>,
  { service }: Pick<Task, 'service'>,
): Service | undefined {
  return service === null ? undefined : (shelf.find(service) ?? shelf.gone(service));
}

export type Showing = ReturnType<typeof createShowing>;

interface Wanted {
  made?: MadeAnswer;
  inList?: boolean;
  withAnswer?: boolean;
}

export function createShowing({ paidCall, shelf, nowMs }: ShowingParts) {
  /** @param made the answer, where it is at hand. `inList`: without the price, and without the answer unless `withAnswer` */
  return async function show(
    task: Task,
    by: AskedBy,
    { made, inList = false, withAnswer = !inList }: Wanted = {},
  ): Promise<ShownTask> {
    const base = { id: task.id, contextId: task.contextId, atMs: task.updatedAtMs };
    const x402 = (status: string) => (task.paidBy === 'x402' ? { [X402.status]: status } : {});
    switch (task.state) {
      case 'working':
      case 'charging':
        return nowMs() > (task.workingUntilMs ?? 0)
          ? stateOf(base, 'input-required', { ...UNKNOWN, metadata: x402('payment-submitted') })
          : stateOf(base, 'working', { metadata: x402('payment-submitted') });
      case 'completed': {
        const { call, statusMessage: said } = task;
        if (!withAnswer) return stateOf(base, 'completed', said);
        const service = serviceOf(shelf, task);
        if (made === undefined && isShownByClaim(task, service))
          return stateOf(base, 'completed', { ...said, text: BY_CLAIM });
        const answer = made ?? (call === null ? null : await paidCall.answerOf(call.accountId, call.id));
        if (answer === null) return stateOf(base, 'completed', { ...said, text: NOT_KEPT });
        return { ...stateOf(base, 'completed', said), artifacts: [artifactOf(task, answer, service)] };
      }
      case 'input-required': {
        const service = task.service === null ? undefined : shelf.find(task.service);
        if (service === undefined || task.statusMessage?.text !== undefined)
          return stateOf(base, 'input-required', task.statusMessage);
        if (inList) return stateOf(base, 'input-required', { text: PRICE_BY_TASK });
        return stateOf(base, 'input-required', await priceOf(service, task, by));
      }
      default:
        return stateOf(base, task.state, task.statusMessage);
    }
  };

  /** Prices a task now, in the words of x402; or why it cannot be bought now. */
  async function priceOf(service: Service, task: Task, by: AskedBy): Promise<StatusMessage> {
    const { input, statusMessage } = task;
    const answer = await paidCall.handle({
      ...by,
      ...FOR_ITS_PRICE,
      service,
      rawBody: input === null ? undefined : Buffer.from(input),
    });
    const body = JSON.parse(answer.body.toString());
    const call = { 'farebox/call': { status: answer.status } };
    if (answer.status !== 402) return { text: body.message, data: body, metadata: call };
    const refused = statusMessage?.refused;
    const required =
      refused === undefined
        ? body
        : {
            ...body,
            error: refused.code,
            code: refused.code,
            last_error_reason: refused,
            message: `${refused.message as string} ${body.message as string}`,
          };
    return {
      text: required.message,
      metadata: { [X402.status]: 'payment-required', [X402.required]: required, ...call },
    };
  }
}

/** A call of which nothing is wanted but the offer that it is answered with. */
const FOR_ITS_PRICE = { headers: {}, gone: () => false, assertMayBuy() {} };

function stateOf(
  base: Pick<ShownTask, 'id' | 'contextId' | 'atMs'>,
  state: ShownTask['state'],
  statusMessage: StatusMessage | null,
): ShownTask {
  const { text = SAID[state], data, metadata = {} } = statusMessage ?? {};
  const parts: Part[] = [{ text }, ...(data === undefined ? [] : [{ data }])];
  return { ...base, state, parts, metadata, artifacts: [] };
}

const SAID: Readonly<Record<ShownTask['state'], string>> = {
  'input-required': 'Something is still needed.',
  working: 'Working on it.',
  completed: 'Here is the answer.',
  failed: 'It failed. Nothing was charged.',
  canceled: 'Canceled. Nothing was charged for this task.',
};

function artifactOf(
  { service: path }: Task,
  { headers, body }: MadeAnswer,
  service: Service | undefined,
): ShownArtifact {
  const [mediaType = ''] = (headers['content-type'] ?? 'application/json').split(';');
  const parts = partsOf(mediaType, body, service);
  return { id: 'answer', name: path ?? 'answer', parts };
}

/** An answer as a part that names what outsiders wrote of it. */
function wholePart(service: Service | undefined, data: unknown): Part {
  const untrusted = service === undefined ? [] : untrustedIn(service, data);
  return untrusted.length === 0 ? { data } : { data, metadata: { [UNTRUSTED_META]: untrusted } };
}

/** A piece of such an answer, all of which may be outsiders' text. */
export function pieceOfAnswer(service: Service | undefined, data: unknown): Part {
  const isOurs = service === undefined || untrustedPathsOf(service).length === 0;
  return isOurs ? { data } : { data, metadata: { [UNTRUSTED_META]: [''] } };
}

/** The parts of an answer. The last event of a streamed one has everything; one that its reader broke off has only its pieces. */
function partsOf(mediaType: string, body: string | Buffer, service: Service | undefined): Part[] {
  if (mediaType === 'application/json') {
    const text = body.toString();
    return [wholePart(service, asObject(text === '' ? {} : JSON.parse(text)))];
  }
  if (mediaType === 'text/event-stream') {
    const events = eventsOf(body.toString());
    const whole = events.find(({ event }) => event === 'result');
    return whole === undefined
      ? events.map((data) => pieceOfAnswer(service, data))
      : [wholePart(service, whole.data)];
  }
  if (mediaType.startsWith('text/')) return [{ text: body.toString() }];
  return [{ raw: Buffer.from(body).toString('base64'), mediaType }];
}
