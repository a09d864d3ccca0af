/** Bugs in what is stored of keys, who may use one, and how often somebody may ask. */
import type { MutantsOfFile } from '../mutant.ts';

const KEYS_TEST = 'apps/shop/test/keys/keys.test.ts';

export const KEYS_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/keys/api-key.ts',
    tests: ['packages/core/src/keys/api-key.test.ts'],
    bugs: [
      ['live_[0-9a-f]{64}$`', 'live_[0-9a-f]{64}`'],
      ["JSON.stringify(['api key', purpose, ...parts])", "['api key', purpose, ...parts].join('')"],
      ["JSON.stringify(['api key', purpose, ...parts])", "JSON.stringify(['api key', ...parts])"],
      ["createHmac('sha256', secret)", "createHmac('sha256', purpose)"],
      ['prefix: apiKey.slice(0, 12)', 'prefix: apiKey.slice(0, 22)'],
      ["typeof header === 'string' && header !== ''", "typeof header === 'string'"],
      ["randomBytes(32).toString('hex')", "'00'.repeat(32)"],
      ['/^Bearer\\s+', '/Bearer\\s+'],
    ],
  },
  {
    file: 'packages/core/src/keys/api-key.ts',
    tests: ['packages/core/src/keys/key-search.test.ts'],
    bugs: [
      ['random + bucket.toString(16)', 'random + (0).toString(16)'],
      ['apiKey.slice(-BUCKET_DIGITS), 16', 'apiKey.slice(0, BUCKET_DIGITS), 16'],
    ],
  },
  {
    file: 'packages/core/src/keys/key-search.ts',
    tests: ['packages/core/src/keys/key-search.test.ts'],
    bugs: [
      ['maxFlights: 1,', 'maxFlights: 8,'],
      ['maxBatch: 256,', 'maxBatch: 2_560,'],
      ['maxWaiting: 2_048,', 'maxWaiting: 20_480,'],
      ['if (row !== undefined) return row;', ''],
      ['found.get(lookup) ?? null', 'null'],
    ],
  },
  {
    file: 'packages/core/src/keys/keys.ts',
    tests: ['packages/core/src/keys/key-search.test.ts'],
    bugs: [
      ['...key, bucket, stored: made,', '...key, bucket: 0, stored: made,'],
      [
        'return insertKey(transaction, { ...key, expiresAtMs, bucket,',
        'return insertKey(transaction, { ...key, expiresAtMs, bucket: 0,',
      ],
      ['select account_id, bucket, $', 'select account_id, 0, $'],
    ],
  },
  {
    file: 'packages/core/src/keys/root-buyer.ts',
    tests: ['packages/core/src/keys/key-search.test.ts'],
    bugs: [['order by r.account_id limit 1', 'order by r.account_id desc limit 1']],
  },
  {
    file: 'packages/core/src/sold-keys/sold-keys.ts',
    tests: ['apps/shop/test/keys/sold-keys.test.ts'],
    bugs: [
      ['ledger.openAccount(transaction, bucket ?? row.key_bucket)', 'ledger.openAccount(transaction)'],
      ['const made = newApiKey(bucket);', 'const made = newApiKey(ledger.newBucket());'],
    ],
  },
  {
    file: 'packages/core/src/topup/topups.ts',
    tests: ['apps/shop/test/keys/topup.test.ts'],
    bugs: [['ledger.openAccount(transaction, ofBuyer ?? row.key_bucket)', 'ledger.openAccount(transaction)']],
  },
  {
    file: 'packages/core/src/custody/envelope.ts',
    tests: ['packages/core/src/custody/envelope.test.ts'],
    bugs: [
      ['if (new Set(key.toLowerCase()).size < 8)', 'if (new Set(key.toLowerCase()).size < 1)'],
      ['new Set(keys.map((key) => key.toLowerCase())).size < keys.length', 'keys.length < 0'],
      ['  cipher.setAAD(Buffer.from(context));\n', ''],
      [
        '      const dataKey = randomBytes(KEY_BYTES);',
        "      const dataKey = Buffer.from('k'.repeat(KEY_BYTES));",
      ],
      ['  const nonce = randomBytes(NONCE_BYTES);', '  const nonce = Buffer.alloc(NONCE_BYTES);'],
      ['if (keys.length > MAX_KEYS)', 'if (keys.length > 1_000_000)'],
    ],
  },
  {
    file: 'packages/core/src/http/rate-limit.ts',
    tests: ['packages/core/src/http/rate-limit.test.ts'],
    bugs: [
      ['if (site === null || !network.allowed) return network;', 'return network;'],
      ['options.perMinute * SITE_FACTOR', 'options.perMinute'],
      ['networks.take(claimantOf(address))', 'networks.take(address)'],
      ['window.count < options.perMinute', 'window.count <= options.perMinute'],
      ['!network.allowed) return network;', 'network.allowed) return network;'],
    ],
  },
  {
    file: 'packages/core/src/http/idempotency-key.ts',
    tests: ['packages/core/src/http/idempotency-key.test.ts'],
    bugs: [
      ["typeof value === 'string' ? unquoted(value) : ''", 'unquoted(String(value))'],
      ['key.length >= length.least && ', ''],
      [' && key.length <= length.most', ''],
      ["if (!/^[\\x21-\\x7e]+$/.test(key)) return 'unfit';", ''],
      ['inner === undefined ? value : inner', 'value'],
    ],
  },
  {
    file: 'packages/core/src/keys/keys.ts',
    tests: [KEYS_TEST],
    bugs: [
      [
        'return timingSafeEqual(found.digest, digest) ? found.key : null;',
        'return found.key;',
        'Two keys with the same first eight bytes of SHA-256 cannot be made in a test: 2^64 tries for a second one.',
      ],
      ["await on`update api_keys set status = 'revoked'", "await on`update api_keys set status = 'active'"],
      ["kind = 'paid', expires_at = null, trial_closed", "kind = 'paid', trial_closed"],
    ],
  },
  {
    file: 'packages/core/src/keys/rotations.ts',
    tests: [KEYS_TEST],
    bugs: [
      [" and status = 'active'", " and status <> 'revoked'"],
      ['const ROTATIONS_A_DAY = 24;', 'const ROTATIONS_A_DAY = 25;'],
      ['const ROTATED_KEPT_MS = 90 * DAY_MS;', 'const ROTATED_KEPT_MS = 9 * DAY_MS;'],
      ['        await refuseTooMany(transaction, account.id, nowMs());\n', ''],
    ],
  },
  {
    file: 'packages/core/src/keys/trial-claims.ts',
    tests: [KEYS_TEST, 'apps/shop/test/keys/trial-credit.test.ts'],
    bugs: [
      [
        "if (taken.count === 0) throw new NotGiven({ status: 'claimed', by: 'address', retryAfterMs: 0 });",
        '',
      ],
      ['    await this.#takeFromSite(transaction, sitesOf(claimants));\n', ''],
      ['claimantOf(address), siteOf(address)', 'address, siteOf(address)'],
      ['claims.slice(TRIALS_PER_SITE)', 'claims.slice(TRIALS_PER_SITE + 1)'],
    ],
  },
  {
    file: 'packages/core/src/keys/trial-budget.ts',
    tests: ['packages/core/src/keys/trial-budget.test.ts', 'apps/shop/test/keys/trial-credit.test.ts'],
    bugs: [
      ['const MORNING_IS_ONE_OF = 8n;', 'const MORNING_IS_ONE_OF = 1n;'],
      ['if (micros > perDayMicros) return DAY_MS;', ''],
      ['cameMicros > this.#trialMicros ? cameMicros : this.#trialMicros', 'cameMicros'],
      ['freeMicros < perDayMicros ? freeMicros : perDayMicros', 'freeMicros'],
    ],
  },
  {
    file: 'packages/core/src/keys/root-buyer.ts',
    tests: ['apps/shop/test/keys/root-buyer.test.ts'],
    bugs: [
      [
        'return row.lifted ? { name: own, isShared: false }',
        'return row.lifted && own === row.name ? { name: own, isShared: false }',
      ],
      ['  if (!isShared) return own;\n', ''],
      ['select pg_advisory_xact_lock(8405, ', 'select (8405, '],
    ],
  },
];
