/** Faults on order: how tests make the mailbox fail. There is nothing like it outside the sandbox. */

const MAX_FAULTS = 100;
const MAX_TIMES = 100_000;

/**
 * - refuse-for-now: the recipient is answered with 451, and the mail is not kept.
 * - refuse-for-good: the recipient is answered with 550, and the mail is not kept.
 * - refuse-after-data: the mail is kept, and answered with 554.
 * - drop-after-data: the mail is kept, and the connection torn down before that is said.
 * - never-answer: the recipient is never answered, and the mail is not kept.
 */
const FAULTS = [
  'refuse-for-now',
  'refuse-for-good',
  'refuse-after-data',
  'drop-after-data',
  'never-answer',
] as const;
type FaultKind = (typeof FAULTS)[number];

interface Fault {
  fault: FaultKind;
  /** How many more mails it strikes. */
  times: number;
}

export interface MailFaults {
  /** Orders a fault, behind those that are on order; or says what is wrong with the order. */
  order(body: unknown): Fault | string;
  list(): Fault[];
  clear(): void;
  /** The fault that strikes a mail at this point, if the next one on order is of that kind. */
  take(point: 'recipient' | 'data'): FaultKind | null;
}

/** Opens an empty list of faults; faults are not kept over a restart. */
export function openFaults(): MailFaults {
  let faults: Fault[] = [];
  return {
    order(body) {
      const fields = new Map<string, unknown>(
        typeof body === 'object' && body !== null ? Object.entries(body) : [],
      );
      const fault = FAULTS.find((one) => one === fields.get('fault'));
      const times = fields.get('times') ?? 1;
      if (fault === undefined) return `fault must be one of ${FAULTS.join(', ')}`;
      if (typeof times !== 'number' || !Number.isInteger(times) || times < 1 || times > MAX_TIMES) {
        return `times must be 1 to ${MAX_TIMES}`;
      }
      if (faults.length >= MAX_FAULTS) return `at most ${MAX_FAULTS} faults`;
      const ordered = { fault, times };
      faults.push(ordered);
      return ordered;
    },
    list: () => [...faults],
    clear() {
      faults = [];
    },
    take(point) {
      const [next] = faults;
      if (next === undefined || next.fault.endsWith('-after-data') !== (point === 'data')) return null;
      next.times -= 1;
      if (next.times <= 0) faults.shift();
      return next.fault;
    },
  };
}
