/** What must never stand in a log, and a watch over the lines that a test's server writes. */

/** What was found: its kind, and the line's head without it. */
export interface Leak {
  kind: string;
  head: string;
}

export interface LogWatch {
  /** Looks at a line as it is written. */
  see(line: string): void;
  /** @throws Error when a secret was written; each is told once */
  assertClean(): void;
}

const HEAD_CHARACTERS = 240;
const SHORTEST_SECRET = 16;
/** Configuration that is secret by its name. A value may hold several, or a name and a secret. */
const SECRET_SETTING = /(?:SECRET|TOKENS?|PASSWORD|_KEY)$/;

const SECRETS: readonly { kind: string; pattern: RegExp; isOne?(found: string): boolean }[] = [
  { kind: 'an API key', pattern: /fbx_live_[0-9a-f]{64}/gi },
  { kind: 'a retrieval token', pattern: /token(?:=|%3D)[0-9a-f]{16,}/gi },
  { kind: 'a secret key of the card provider', pattern: /\b[sr]k_(?:test|live)_\w{4,}/g },
  { kind: 'a webhook secret', pattern: /\bwhsec_\w{4,}/g },
  {
    kind: 'a private key',
    pattern: /"\w*key\w*"\s*:\s*"(?:0x)?[0-9a-f]{64}"/gi,
    isOne: (found) => !/^"\w*public/i.test(found),
  },
  {
    // As the networks number them, so that a time or an amount is not taken for one.
    kind: 'a card number',
    pattern: /(?<![\w.-])(?:4\d{3}|5[1-5]\d\d|2[2-7]\d\d|3[47]\d\d|6\d{3})(?:[ -]?\d){9,15}(?![\w.]|-\d)/g,
    isOne: (found) => passesLuhn(found.replaceAll(/\D/g, '')),
  },
];

/**
 * The first secret in a text.
 *
 * @param literals further secrets, as they are
 * @returns null: there is none
 */
export function secretIn(text: string, literals: readonly string[] = []): Leak | null {
  let redacted = text;
  const kinds: string[] = [];
  for (const literal of literals) {
    if (!redacted.includes(literal)) continue;
    kinds.push('a secret of the configuration');
    redacted = redacted.replaceAll(literal, '<…>');
  }
  for (const { kind, pattern, isOne } of SECRETS) {
    redacted = redacted.replaceAll(pattern, (found) => {
      if (isOne?.(found) === false) return found;
      kinds.push(kind);
      return '<…>';
    });
  }
  const [kind] = kinds;
  return kind === undefined ? null : { kind, head: redacted.slice(0, HEAD_CHARACTERS) };
}

/** Leaks that nobody was told of: a server that was never closed must not hide one. */
const untold = new Set<Leak>();
process.once('exit', () => {
  if (untold.size === 0) return;
  for (const leak of untold) process.stderr.write(`${messageOf(leak)}\n`);
  process.exitCode = 1;
});

/** @param environment the server's configuration, whose secrets must not be logged either */
export function watchLog(environment: Readonly<Record<string, string>>): LogWatch {
  const literals = Object.entries(environment)
    .filter(([name]) => SECRET_SETTING.test(name))
    .flatMap(([, value]) => value.split(/[,:\s]+/))
    .filter((part) => part.length >= SHORTEST_SECRET);
  const found: Leak[] = [];
  return {
    see(line) {
      const leak = secretIn(line, literals);
      if (leak === null) return;
      found.push(leak);
      untold.add(leak);
    },
    assertClean() {
      const leaks = found.splice(0);
      for (const leak of leaks) untold.delete(leak);
      if (leaks.length > 0) throw new Error(leaks.slice(0, 5).map(messageOf).join('\n'));
    },
  };
}

function messageOf({ kind, head }: Leak): string {
  return `the server logged ${kind}: ${head}`;
}

/** The check digit of ISO/IEC 7812. */
function passesLuhn(digits: string): boolean {
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 1 ? 2 : 1);
    return total + (value > 9 ? value - 9 : value);
  }, 0);
  return sum % 10 === 0;
}
