/** Bugs in queues of leased work: work that is lost, done by two at once, or undone by whoever comes back too late. */
import type { MutantsOfFile } from '../mutant.ts';

export const QUEUES_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/db/leased-queue.ts',
    tests: ['packages/core/src/db/leased-queue.test.ts'],
    bugs: [
      ['for update skip locked', ''],
      ['for update skip locked', 'for update'],
      ['order by next_at ', 'order by next_at desc '],
      ['where next_at <=', 'where next_at >='],
      ['const leasedUntil = this.leaseEnd();', 'const leasedUntil = this.#at();'],
      ['return this.#at(this.#shape.leaseMs);', 'return this.#at(this.#shape.leaseMs / 2);'],
      [' and item.next_at = ', ' and item.next_at >= '],
      ['attempts === null ? on`` : on`and', 'attempts !== undefined ? on`` : on`and'],
      ['isFact ? this.#named(held, on) : this.#heldBy(held, on)', 'this.#named(held, on)'],
      ['isFact ? this.#named(held, on) : this.#heldBy(held, on)', 'this.#heldBy(held, on)'],
      ['isFact && givenUpAt !== null', 'false'],
      [
        'mostAttempts === null || heldAttempts < mostAttempts',
        'mostAttempts === null || heldAttempts <= mostAttempts',
      ],
      ['mostAttempts !== null && heldAttempts > mostAttempts', 'false'],
      [
        "if (settled === 'kept') return this.#update(where, { next_at: null, ...set }, on);",
        "if (settled === 'kept') return this.#update(where, { ...set, given_up_at: null }, on);",
      ],
      [')} - 1`', ')} - 0`'],
      [')} + 1`', ')} + 0`'],
      ['this.#shape.only?.(on) ?? on`true`', 'on`true`'],
      ['Math.max(0, nowMs() - oldest.getTime())', '(nowMs() - oldest.getTime())'],
    ],
  },
  {
    file: 'packages/core/src/db/due-rows.ts',
    tests: ['packages/core/src/db/due-rows.test.ts'],
    bugs: [
      ['failures.push(error);', 'throw error;'],
      ['  if (failures.length > 0) throw failures[0];\n', ''],
      ['if (await work.act(row)) further += 1;', 'await work.act(row), (further += 1);'],
      ['more = due.length === work.pageSize;', 'more = false;'],
    ],
  },
  {
    file: 'packages/core/src/cards/orders/inbox.ts',
    tests: ['packages/core/src/cards/orders/inbox.test.ts'],
    bugs: [
      ['!queue.mayTryAgain(event) && !(error instanceof ProviderUnavailable)', '!queue.mayTryAgain(event)'],
      ['!queue.mayTryAgain(event) && !(error instanceof ProviderUnavailable)', 'false'],
      ['      await assigned.catch(() => {});\n', '      await assigned;\n'],
      ['      await queue.giveBack(events.filter((event) => !begun.has(event)));\n', ''],
    ],
  },
  {
    file: 'packages/core/src/mail/mailer.ts',
    tests: ['packages/core/src/mail/mailer.test.ts'],
    bugs: [
      ["delivery.kind === 'refused' || !queue.mayTryAgain(held)", '!queue.mayTryAgain(held)'],
      ["delivery.kind === 'refused' || !queue.mayTryAgain(held)", "delivery.kind === 'refused'"],
      ['queue.isSpent(held)', 'false'],
    ],
  },
  {
    file: 'packages/core/src/webhooks/courier.ts',
    tests: ['packages/core/src/webhooks/outbox.test.ts'],
    bugs: [
      ['    if (noted.length === 0) return noted;\n', ''],
      ['    await this.#queue.giveBack(unsent, transaction);\n', ''],
      ['      if (!isHolder) return [];\n', ''],
      ['this.#queue.isSpent(claimed)', 'false'],
      ['on: transaction, isFact: true', 'on: transaction'],
    ],
  },
];
