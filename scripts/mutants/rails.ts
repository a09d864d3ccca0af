/** Bugs in what a payment is taken for, and in what a chain is told. */
import type { MutantsOfFile } from '../mutant.ts';

export const RAILS_MUTANTS: readonly MutantsOfFile[] = [
  {
    file: 'packages/core/src/rails/evm/eip3009.ts',
    tests: ['packages/core/src/rails/evm/eip3009.test.ts'],
    bugs: [
      ['{from}:$', '{nonce}:$'],
      ['{nonce}`', '{from}`'],
      ['{network}:$', "{''}:$"],
      ['asset.toLowerCase()', 'asset'],
      ['v < 27 ? v + 27 : v', 'v'],
      ['  preimage.set(domainSeparator(network), 2);\n', ''],
      [
        'const domains = new WeakMap<EvmNetwork, Buffer>();',
        'const domains = { only: undefined as Buffer | undefined, get() { return this.only; }, set(_: object, made: Buffer) { this.only = made; } };',
      ],
      ['word(encoded, 96, BigInt(network.chainId));', 'word(encoded, 96, 1n);'],
      ['word(target, at + 96, authorization.validAfter);', 'word(target, at + 96, 0n);'],
      ['word(target, at + 128, authorization.validBefore);', ''],
      ['word(data, 192, 224n);', 'word(data, 192, 192n);'],
      ['Math.ceil(bytes.length / 32)', 'Math.floor(bytes.length / 32)'],
      ['.toLowerCase().padStart(64', '.padStart(64'],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/wire.ts',
    tests: ['packages/core/src/rails/x402/wire.test.ts', 'packages/core/src/rails/x402/empty-fields.test.ts'],
    bugs: [
      [
        "if (Array.isArray(found)) throw malformed('it came more than once');",
        "if (Array.isArray(found)) return readPresented({ 'x-payment': found[0] });",
      ],
      ["if (both && headers['payment-signature'] !== headers['x-payment'])", 'if (both && false)'],
      ['if (header.length > MAX_HEADER_CHARS) throw', 'if (header.length > 100 * MAX_HEADER_CHARS) throw'],
      [
        "return { scheme: 'transfer', network: null, transaction: header.toLowerCase() };",
        "return { scheme: 'transfer', network: null, transaction: header };",
      ],
      [
        "if (typeof value !== 'object' || value === null || Array.isArray(value))",
        "if (typeof value !== 'object' || value === null)",
      ],
      [
        'network: namedNetwork(json.network), transaction: hash.toLowerCase()',
        'network: namedNetwork(json.network), transaction: hash',
      ],
      ["if (version === 2 && accepted === null) throw malformed('accepted is missing');", ''],
      ["if (scheme !== 'exact') {", "if (typeof scheme !== 'string') {"],
      ['if (network === null) throw unsupportedNetwork();', ''],
      ['isClaimSecret(claimSecret) ? claimSecret : null', 'null'],
      ['{16,128}$/.test(id)', '{1,128}$/.test(id)'],
      ['if (found === undefined) throw unsupportedNetwork();', ''],
      [
        '[network.id, network.name, network.legacyName]',
        '[network.id, network.name]',
        'The older names of networks are their own names today.',
      ],
      ['nonce: hexOf(32),', 'nonce: hexOf(20),'],
      [
        '.transform((value) => value.toLowerCase() as Hex);\nconst decimal',
        '.transform((value) => value as Hex);\nconst decimal',
      ],
      ['z.int().min(0)]', 'z.int()]'],
      ['json.x402Version !== 1 && json.x402Version !== 2', 'json.x402Version === undefined'],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/solana-transfer.ts',
    tests: ['packages/core/src/rails/x402/solana-transfer.test.ts'],
    bugs: [
      [
        "if ('addressTableLookups' in message && (message.addressTableLookups?.length ?? 0) > 0)\n      throw new Error('looks accounts up elsewhere');",
        '',
        'An account of a table has no place among the static ones: an instruction that names one is refused all the same.',
      ],
      ["if (message.instructions.length > MAX_INSTRUCTIONS) throw new Error('too many instructions');", ''],
      ['transfers.length !== 1 || transfer === undefined', 'transfer === undefined'],
      ['program !== TOKEN_PROGRAM && program !== TOKEN_2022_PROGRAM', 'program === MEMO_PROGRAM'],
      ['data.length !== 10 || data.readUInt8(0) !== TRANSFER_CHECKED', 'data.length !== 10'],
      ['authority === undefined || mint !== wanted.asset', 'authority === undefined'],
      [
        'payTo !== null && destination !== (await tokenAccountOf(payTo, wanted.asset))',
        'payTo !== null && destination === undefined',
      ],
      ["if (feePayer === authority) throw new Error('the payer would pay the fee');", ''],
      [
        'if (!(await verifySignature(key, signature, decoded.messageBytes)))\n      throw',
        'if (key === null)\n      throw',
      ],
      ['update(Uint8Array.from(decoded.messageBytes))', 'update(transaction)'],
      [
        'new Set<string>([COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM, LIGHTHOUSE_PROGRAM])',
        'new Set<string>([COMPUTE_BUDGET_PROGRAM, MEMO_PROGRAM])',
      ],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/solana-key.ts',
    tests: ['packages/core/src/rails/x402/solana-key.test.ts'],
    bugs: [
      [
        "if (!publicKey.equals(bytes.subarray(SEED_BYTES))) throw new Error('the halves do not fit together');",
        '',
      ],
      [
        'bytes === null || bytes.length !== 2 * SEED_BYTES',
        'bytes === null || bytes.length < SEED_BYTES',
        'A key of another length has halves that do not fit together, which is refused next.',
      ],
      ['&& each >= 0 && each < 256', ''],
    ],
  },
  {
    file: 'packages/core/src/rails/on-chain/facilitator.ts',
    tests: [
      'packages/core/src/rails/on-chain/facilitator.test.ts',
      'packages/core/src/rails/x402/empty-fields.test.ts',
    ],
    bugs: [
      ["if (reply.data.isValid) return { status: 'valid' };", "return { status: 'valid' };"],
      ['if (reply.data.success && transaction !== null) return', 'if (reply.data.success) return'],
      ['if (reply.data.success && transaction !== null) return', 'if (transaction !== null) return'],
      ['reply.data.transaction || null', 'reply.data.transaction ?? null'],
      ["  'ECONNREFUSED',\n", ''],
      [
        'const NOT_REACHED = new Set([',
        "const NOT_REACHED = new Set(['UND_ERR_SOCKET', 'UND_ERR_HEADERS_TIMEOUT', 'ECONNRESET', ",
      ],
      ['const MAX_REPLY_BYTES = 200_000;', 'const MAX_REPLY_BYTES = 200_000_000;'],
      [
        "if (!reply.success) return { status: 'unavailable', reached: true };\n        const transaction",
        "if (!reply.success) return { status: 'unavailable', reached: false };\n        const transaction",
      ],
      ['errorReason: z.string().max(2_000).nullish()', 'errorReason: z.string().max(2_000).optional()'],
    ],
  },
  {
    file: 'packages/core/src/rails/on-chain/facilitator-reasons.ts',
    tests: ['packages/core/src/rails/on-chain/facilitator-reasons.test.ts'],
    bugs: [
      ['/^[a-z0-9_]{1,100}$/.test(reason) ? reason : null', 'reason'],
      [
        "  [/nonce_already_used|duplicate_settlement|authorization_used/, 'PAYMENT_AUTHORIZATION_USED'],\n",
        '',
      ],
      ["[/valid_before|expired/, 'PAYMENT_EXPIRED']", "[/valid_before|expired/, 'PAYMENT_NOT_YET_VALID']"],
    ],
  },
  {
    file: 'packages/core/src/rails/mpp/challenge-template.ts',
    tests: ['packages/core/src/rails/mpp/challenge-template.test.ts'],
    bugs: [
      ['const LIFE_MS = 5 * 60_000;', 'const LIFE_MS = 50 * 60_000;'],
      ['Object.keys(opaque).sort()', 'Object.keys(opaque)'],
      ["createHmac('sha256', secretKey)", "createHmac('sha256', '')"],
      ['        ids.push(id);\n', '        ids.unshift(id);\n'],
    ],
  },
  {
    file: 'packages/core/src/rails/x402/chains.ts',
    tests: ['packages/core/src/rails/x402/chains.test.ts'],
    bugs: [
      ['transferOf(payment) === null && settlesOurselves', 'settlesOurselves'],
      [' && open.settling !== null;', ';'],
      ["'settling' in open && open.settling", 'open'],
    ],
  },
  {
    file: 'packages/core/src/rails/evm/own-settler.ts',
    tests: ['packages/core/src/rails/evm/own-settler.test.ts'],
    bugs: [
      ['        onlyIf: (sql) => isKept(sql, payment.identity),\n', ''],
      ['    if (error instanceof NotWanted) await forgive();\n', ''],
    ],
  },
  {
    file: 'packages/core/src/paid-call/kept-payment.ts',
    tests: [
      'packages/core/src/rails/evm/own-settler.test.ts',
      'packages/core/src/paid-call/inside/lost-begins.test.ts',
    ],
    bugs: [
      [' and i.kind = 1 and', ' and'],
      ['join settlements s', 'left join settlements s'],
    ],
  },
  {
    file: 'packages/core/src/relayer/ending-sender.ts',
    tests: ['packages/core/src/relayer/ending-sender.test.ts'],
    bugs: [
      ['{once}, ', '{false}, '],
      ['(isLostForGood(fate) && !order.once)', 'isLostForGood(fate)'],
      [
        "      fate = row.state === STATES.pending ? { status: 'unseen' } : await this.#fateOf(row);",
        "      fate = { status: 'unseen' };",
      ],
      [' and state = 0 returning paid_by', ' returning paid_by'],
    ],
  },
  {
    file: 'packages/core/src/relayer/store.ts',
    tests: ['packages/core/src/relayer/relayer.test.ts'],
    bugs: [
      ['onlyIf === undefined ? all :', 'onlyIf !== undefined ? all :'],
      ['return row?.wanted === true;', 'return true;'],
    ],
  },
];
