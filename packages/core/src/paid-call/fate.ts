/**
 * What became of the caller's money, as far as it is known when a request fails. An error's `charged` and its sentence
 * about money are both made from this one value, because an agent that reads `false` after the money has moved would
 * pay again.
 */
import { Problem } from '../http/problem.ts';

export type Fate =
  /** Nothing was taken. Whatever was reserved is given back. */
  | 'free'
  /** This request took nothing. Whether an earlier request with the same payment did was not looked up. */
  | 'not looked'
  /** The outcome is unknown: a chain has the payment, or an earlier request may have been charged for it. */
  | 'open'
  /** The price may have been taken for an answer that nobody can ask for. If it was, it is given back. */
  | 'given back'
  /** The price was taken, and the answer can still be fetched. */
  | 'taken'
  /** The price was taken, and the answer was delivered long ago. */
  | 'spent'
  /** The price was taken, and is sent back on its chain. */
  | 'refunded';

interface Money {
  charged: boolean | null;
  sentence: string;
}

const FREE: Money = { charged: false, sentence: 'Nothing was charged.' };
const OPEN: Money = {
  charged: null,
  sentence:
    'It is not known yet whether this payment was charged. Send the same request with the same payment or Idempotency-Key again, and no new one: it is charged at most once.',
};
const MONEY: Record<Exclude<Fate, 'not looked'>, Money> = {
  free: FREE,
  open: OPEN,
  'given back': {
    charged: null,
    sentence: 'It is not known yet whether this call was charged. If it was, its price is given back.',
  },
  taken: {
    charged: true,
    sentence:
      'The payment was taken. Send the same request with the same payment again: it is not charged twice.',
  },
  spent: { charged: true, sentence: 'The payment was charged when it was answered.' },
  refunded: { charged: false, sentence: 'The payment is sent back.' },
};

/** The failure as the caller is told it, with `charged` and a last sentence that say what became of the money. */
export function tellFate(problem: Problem, fate: Fate): Problem {
  const { charged, sentence } = MONEY[fate === 'not looked' ? seenFrom(problem.status) : fate];
  return new Problem(problem.status, problem.code, `${problem.message} ${sentence}`, {
    details: { ...problem.details, charged },
    headers: { ...problem.headers },
    cause: problem.cause,
  });
}

/**
 * Reads 'not looked' by the status. An invalid request is refused whatever was paid before; a request that is limited
 * or meets an outage may be a repeat.
 */
function seenFrom(status: number): 'free' | 'open' {
  return status === 429 || status >= 500 ? 'open' : 'free';
}
