/** How tests make the mailbox fail. */
import { fieldsOf, isIntegerIn, openFaults } from '../faults.ts';

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

export function openMailFaults() {
  const { take, ...faults } = openFaults('times', read);
  return {
    ...faults,
    /** The fault that strikes a mail at this point, if the next one on order is of that kind. */
    take: (point: 'recipient' | 'data'): FaultKind | null =>
      take(({ fault }, place) => place === 0 && fault.endsWith('-after-data') === (point === 'data'))
        ?.fault ?? null,
  };
}

function read(body: unknown): Fault | string {
  const { fault: name, times = 1 } = fieldsOf(body);
  const fault = FAULTS.find((one) => one === name);
  if (fault === undefined) return `fault must be one of ${FAULTS.join(', ')}`;
  if (!isIntegerIn(times, 1, MAX_TIMES)) return `times must be 1 to ${MAX_TIMES}`;
  return { fault, times };
}
