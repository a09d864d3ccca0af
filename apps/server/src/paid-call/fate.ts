/**
 * What became of the caller's money, as far as it is known when a request fails: the one value from which an error's
 * `charged` and its words about money are made. An agent that reads `false` where the money has moved pays again.
 */
import { Problem } from '../http/problem.ts';

export type Fate =
  /** Nothing was taken, and what was reserved is given back. */
  | 'free'
  /** This request has taken nothing; whether an earlier one with the same payment has was not looked at. */
  | 'not looked'
  /** A chain has the payment, or an earlier request may have been charged for it. */
  | 'open'
  /** It may have been taken for an answer that nobody can ask for: then it is given back. */
  | 'given back'
  /** It was taken, and the answer is still to come. */
  | 'taken'
  /** It was taken, for an answer that left long ago. */
  | 'spent'
  /** It was taken, and goes back on its chain. */
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

/** A failure as the caller is told it: its `charged` and its last sentence say what became of the money. */
export function tellFate(problem: Problem, fate: Fate): Problem {
  const { charged, sentence } = MONEY[fate === 'not looked' ? seenFrom(problem.status) : fate];
  return new Problem(problem.status, problem.code, `${problem.message} ${sentence}`, {
    details: { ...problem.details, charged },
    headers: { ...problem.headers },
    cause: problem.cause,
  });
}

/** A request that is wrong is refused whatever was paid before; one that comes at the wrong time may be a repeat. */
function seenFrom(status: number): 'free' | 'open' {
  return status === 429 || status >= 500 ? 'open' : 'free';
}
