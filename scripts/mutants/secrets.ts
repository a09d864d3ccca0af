/** Bugs in how secrets are read from files, and in how they are renewed. */
import type { MutantsOfFile } from '../mutant.ts';

export const SECRET_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/secret-files.ts',
    tests: ['apps/shop/src/config.test.ts'],
    bugs: [
      ['if (own !== null) return { problem', "if (own === '') return { problem"],
      ["if (text.trim() === '') return { why: 'names an empty file' };", ''],
      ['if (/[\\r\\n\\0]/.test(text)) return', 'if (false) return'],
      ["if (!found.isFile()) return { why: 'names no file' };", ''],
    ],
  },
  {
    file: 'packages/core/src/config.ts',
    tests: ['apps/shop/src/config.test.ts'],
    bugs: [['changed.filter(({ renewed }) => renewed === true)', 'changed']],
  },
  {
    file: 'packages/core/src/operator/credentials.ts',
    tests: ['apps/shop/test/operator/secret-rotation.test.ts'],
    bugs: [
      [
        '  return {\n    admit(authorization, address) {',
        '  const first = tokens();\n  tokens = () => first;\n  return {\n    admit(authorization, address) {',
      ],
    ],
  },
  {
    file: 'packages/core/src/relayer/remote-signer.ts',
    tests: ['packages/core/src/relayer/remote-signer.test.ts'],
    bugs: [
      ['if (by.toLowerCase() !== address) continue;', ''],
      ['s: s > n / 2n ? n - s : s', 's'],
    ],
  },
  {
    file: 'packages/core/src/relayer/signer-process.ts',
    tests: ['packages/core/src/relayer/remote-signer.test.ts'],
    bugs: [
      ['if (value > 0n) return', 'if (value < 0n) return'],
      ['return (gas ?? 0n) > MAX_GAS ?', 'return (gas ?? 0n) < 0n ?'],
      ['if (to === undefined || to === null)', "if (to === '0x')"],
      ["if (calls.length !== 1) return 'it is not one call';", ''],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/solana-signed.ts',
    tests: ['packages/core/src/rails/x402/solana-signed.test.ts'],
    bugs: [
      ["if (staticAccounts[0] !== address) return 'another key pays its fee';", ''],
      ["else return 'it does more than to transfer a token';", ''],
      ["if (transfers !== 1) return 'it is not one transfer of a token';", ''],
      ["if (opens > 1) return 'it opens more than one account';", ''],
      ["if (price > 0n && limit === 0n) return 'it sets no limit of units';", ''],
      ['limit * price > MAX_PRIORITY_LAMPORTS * MICRO_LAMPORTS', 'limit < 0n'],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/solana-key.ts',
    tests: ['packages/core/src/rails/x402/solana-signed.test.ts'],
    bugs: [['if (!verify(null, message, publicKey, signature))', 'if (signature.length !== 64)']],
  },
  {
    file: 'packages/core/src/rails/mpp/offer.ts',
    tests: ['apps/shop/test/operator/secrets-under-load.test.ts'],
    bugs: [['    if (keys !== known.keys) known = signedWith(keys);\n', '']],
  },
  {
    file: 'packages/core/src/tracing/open-telemetry.ts',
    tests: ['apps/shop/test/operator/secrets-under-load.test.ts'],
    bugs: [['headers: async () => ({ ...settings.headers() })', 'headers: { ...settings.headers() }']],
  },
  {
    file: 'packages/yield/src/solana/nodes.ts',
    tests: ['packages/yield/src/solana/nodes.test.ts'],
    bugs: [
      ['if (now.join() !== known.urls.join()) {', 'if (now.length === 0) {'],
      ['      if (running === 0) void close();', '      void close();'],
    ],
  },
  {
    file: 'packages/core/src/tracing/open-telemetry.ts',
    tests: ['apps/shop/test/operator/traces.test.ts'],
    bugs: [['Math.random() < settings.sampled', 'settings.sampled >= 0']],
  },
  {
    file: 'packages/core/src/tracing/traced.ts',
    tests: ['packages/core/src/tracing/traced.test.ts', 'apps/shop/test/operator/traces.test.ts'],
    bugs: [
      [
        "span.end(facts(), error instanceof Error ? error.name : 'unknown');",
        'span.end(facts(), String(error));',
      ],
      ['parent === undefined ? run()', 'parent !== undefined ? run()'],
      ['within.getStore() === undefined ? run() : within.run(undefined, run)', 'run()'],
    ],
  },
  {
    file: 'packages/core/src/secrets/register.ts',
    tests: ['apps/shop/test/keys/secret-rotation.test.ts'],
    bugs: [
      ['          await noteOthers(transaction);\n', ''],
      ['delivered_at is null and state < 2', 'delivered_at is null and state < 1'],
      ['CLAIMS_MATTER_MS = 7 *', 'CLAIMS_MATTER_MS = 9 *'],
      ['having not bool_or(', 'having not bool_and('],
    ],
  },
];
