/** Bugs in what keeps stolen cards away, and in whose a disputed payment is. */
import type { MutantsOfFile } from '../mutant.ts';

export const CARDS_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/cards/ways/purchase-limits.ts',
    tests: ['packages/core/src/cards/ways/purchase-limits.test.ts'],
    bugs: [
      ['networkAttempts: 5,', 'networkAttempts: 6,'],
      ['networkDeclines: 3,', 'networkDeclines: 4,'],
      ['siteFactor: 4,', 'siteFactor: 1,'],
      ['cardNewAccounts: 3,', 'cardNewAccounts: 4,'],
      ['cardMicros: 200_000_000n,', 'cardMicros: 2_000_000_000n,'],
      ['cardDeclines: 5,', 'cardDeclines: 6,'],
      ['past.filter(({ atMs }) => atMs > nowMs - ms)', 'past.filter(() => true)'],
      ['last.atMs - first.atMs < networkDeclinesMs', 'last.atMs - first.atMs >= networkDeclinesMs'],
      ['if (untilMs > nowMs) return', 'return'],
      ["outcome === 'declined' || outcome === 'open',", "outcome === 'declined',"],
      ["outcome === 'paid' || outcome === 'open');", "outcome === 'paid');"],
      ['.filter(({ isNewAccount }) => isNewAccount)', ''],
      ['if (next.isNewAccount && account !== undefined)', 'if (account !== undefined)'],
      ['let spent = next.amountMicros;', 'let spent = 0n;'],
      ['if (spent > cardMicros)', 'if (spent >= cardMicros)'],
      ["full.outcome === 'open' ? underWayMs : full.atMs + ms - nowMs", 'full.atMs + ms - nowMs'],
      ["parsed.kind() === 'ipv4' ? 24 : 64", "parsed.kind() === 'ipv4' ? 32 : 64"],
      ["parsed.kind() === 'ipv4' ? 24 : 64", "parsed.kind() === 'ipv4' ? 24 : 128"],
    ],
  },
  {
    file: 'packages/core/src/cards/stripe/replies.ts',
    tests: ['packages/core/src/cards/stripe/replies.test.ts'],
    bugs: [
      ['  if (brand === null || last4 === null) return null;\n', ''],
      ['/^[a-z_]{1,32}$/.test(brand) &&', ''],
      ['&& /^\\d{4}$/.test(last4) ? { brand, last4 }', '? { brand, last4 }'],
    ],
  },
  {
    file: 'packages/core/src/cards/orders/reconcile.ts',
    tests: ['apps/shop/test/cards/checkout.test.ts'],
    bugs: [['card?.shown == null || isErased ?', 'card?.shown == null ?']],
  },
  {
    file: 'packages/core/src/cards/disputes/dispute.ts',
    tests: ['packages/core/src/cards/disputes/dispute.test.ts'],
    bugs: [
      ["status === 'won' || status.startsWith('warning_')", "status === 'won'"],
      ["status === 'won' || status.startsWith('warning_')", "status.startsWith('warning_')"],
      ['net + amount, 0) < 0', 'net + amount, 0) > 0'],
      ["mayComeBack: status !== 'lost'", 'mayComeBack: true'],
      ['return { isGone: true, mayComeBack: status', 'return { isGone: false, mayComeBack: status'],
      ['if (isGone) standing.goneCents', 'standing.goneCents'],
      ['if (mayComeBack) standing.disputedCents', 'standing.disputedCents'],
      ['standing.goneCents += dispute.amount', 'standing.goneCents = dispute.amount'],
      ['    if (standing.worst !== null && !isGone) continue;\n', ''],
      ['dueBy * 1_000', 'dueBy'],
    ],
  },
  {
    file: 'packages/core/src/cards/orders/sweep.ts',
    tests: ['packages/core/src/cards/orders/sweep.test.ts'],
    bugs: [
      ["if (kind === 'checkout' && nowMs() < expiresAtMs) return", "if (kind === 'checkout') return"],
      ["if (order?.state !== 'open') await orders.rest(id);\n      else if", 'if'],
      ['      if (stopping?.aborted === true) return;\n', ''],
      ['act(item).catch((error: unknown) => void failures.push(error))', 'act(item)'],
      ['  if (failures.length > 0) throw failures[0];\n', ''],
      ['Array.from({ length: atOnce }, work)', 'Array.from({ length: atOnce * 2 }, work)'],
    ],
  },
];
