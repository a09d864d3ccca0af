/** Bugs in the sale of routes behind gates: who may say what, at which price, and how often. */
import type { MutantsOfFile } from '../mutant.ts';

const PROTOCOL = ['apps/shop/test/own-api/gate/protocol.test.ts'];
const GUEST = ['packages/gate/src/farebox.test.ts'];

export const GATE_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/proxy/src/gate/read-message.ts',
    tests: PROTOCOL,
    bugs: [
      [
        "if (!isSignedBy(secret.reveal(), { ...parts, kind: 'message', body }, signature ?? ''))",
        'if (!signature)',
      ],
      ['if (Math.abs(nowMs() - sentAtMs) > CLOCKS_APART_MS)', 'if (nowMs() - sentAtMs > CLOCKS_APART_MS)'],
      ['if (Math.abs(nowMs() - sentAtMs) > CLOCKS_APART_MS)', 'if (sentAtMs - nowMs() > CLOCKS_APART_MS)'],
      ['if (!(await messages.isNew(name, nonce, sentAtMs + 2 * CLOCKS_APART_MS)))', 'if (nonce === guest)'],
      ['sentAtMs + 2 * CLOCKS_APART_MS', 'sentAtMs'],
    ],
  },
  {
    file: 'packages/proxy/src/gate/desk.ts',
    tests: PROTOCOL,
    bugs: [
      [' || found.route.route.key !== key', ''],
      ['here !== null && (await store.take(call, gate))', 'here !== null'],
      ["JSON.stringify(['caller of a gate', gate, name])", "JSON.stringify(['caller of a gate', name])"],
      ["message.method === 'HEAD' ? {} : headers", 'headers'],
      ['call.isRunning ? call.callerLeft : arrival.gone()', 'arrival.gone()'],
    ],
  },
  {
    file: 'packages/proxy/src/gate/waiting-calls.ts',
    tests: PROTOCOL,
    bugs: [
      [
        'found?.gate === gate ? found : null',
        'found ?? null',
        'the statement that claims the end of a call asks for its gate too',
      ],
    ],
  },
  {
    file: 'packages/proxy/src/gate/gate-store.ts',
    tests: PROTOCOL,
    bugs: [
      ['and state < 2 and open_until', 'and open_until'],
      ['return taken.count === 1;', 'return true;'],
    ],
  },
  {
    file: 'packages/proxy/src/sell/gate-service.ts',
    tests: PROTOCOL,
    bugs: [["if (http === null || !('ask' in http))", 'if (http === null)']],
  },
  {
    file: 'packages/gate/src/signature.ts',
    tests: GUEST,
    bugs: [
      ['kind, to, guest, timestamp, nonce, digest]', 'kind, to, guest, timestamp, nonce]'],
      ['timingSafeEqual(given, expected)', 'true'],
    ],
  },
  {
    file: 'packages/gate/src/farebox.ts',
    tests: GUEST,
    bugs: [
      [
        "if (!isSignedBy(secret, { ...parts, kind: 'answer', body: answer }, signature))",
        'if (signature === guest)',
      ],
    ],
  },
  {
    file: 'packages/gate/src/calls.ts',
    tests: GUEST,
    bugs: [
      ['!OF_MONEY.test(name) && (', '('],
      ["await this.#farebox.say('begin', message)", "await this.#farebox.sayUntilAnswered('begin', message)"],
      ['await this.#farebox.sayUntilAnswered(verb,', 'await this.#farebox.say(verb,'],
    ],
  },
];
