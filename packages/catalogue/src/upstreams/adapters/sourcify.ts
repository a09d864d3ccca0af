import type { Address } from 'viem';
import { z } from 'zod';
import { defineUpstream } from '../define.ts';

/** Larger sources are refused. */
export const MAX_SOURCE_BYTES = 1_000_000;
const MAX_SOURCE_FILES = 400;

/** A contract whose published source compiles to the code on the chain. */
export interface VerifiedSource {
  /** `exact_match`: the metadata too; `match`: the code alone. */
  match: string;
  /** ISO 8601. */
  verifiedAt: string | null;
  /** `Solidity`, `Vyper`, … */
  language: string;
  compilerVersion: string;
  contractName: string | null;
  remappings: string[];
  /** The text of each file by its path. */
  sources: Record<string, string>;
}

const contract = z
  .looseObject({
    match: z.string().max(40).nullish(),
    verifiedAt: z.string().max(40).nullish(),
    compilation: z
      .looseObject({
        language: z.string().max(40),
        compilerVersion: z.string().max(100),
        name: z.string().max(300).nullish(),
        compilerSettings: z
          .looseObject({ remappings: z.array(z.string().max(500)).max(500).nullish() })
          .nullish(),
      })
      .nullish(),
    sources: z
      .record(z.string().max(500), z.looseObject({ content: z.string() }))
      .refine((sources) => Object.keys(sources).length <= MAX_SOURCE_FILES, 'has too many files')
      .nullish(),
  })
  .transform((raw): VerifiedSource | null => {
    const { compilation, sources } = raw;
    if (raw.match == null || compilation == null || sources == null) return null;
    return {
      match: raw.match,
      verifiedAt: raw.verifiedAt ?? null,
      language: compilation.language,
      compilerVersion: compilation.compilerVersion,
      contractName: compilation.name ?? null,
      remappings: compilation.compilerSettings?.remappings ?? [],
      sources: Object.fromEntries(Object.entries(sources).map(([path, { content }]) => [path, content])),
    };
  });

/** Sourcify, the open register of verified contracts. https://docs.sourcify.dev/docs/api/ (API v2) */
export const sourcify = defineUpstream({
  name: 'sourcify',
  title: 'Sourcify',
  baseUrl: 'https://sourcify.dev/server',
  licence: 'Sourcify open data; each contract keeps the licence that its source states',
  terms: {
    commercialUse: 'allowed',
    note: 'Open data; each contract keeps the licence that its source states.',
    attribution: null,
    url: 'https://sourcify.dev',
  },
  documentation: {
    at: 'https://github.com/argotorg/sourcify/blob/4208c592/services/server/src/apiv2.yaml',
    readOn: '2026-11-29',
  },
  key: 'none',
  requestsPerMinute: 120,
  open: (http) => ({
    /** The source of a contract; a null value when nobody has verified it. @param chainId EIP-155 id */
    async contract(chainId: number, address: Address) {
      const reply = await http.find({
        path: `/v2/contract/${chainId}/${address}`,
        query: { fields: 'sources,compilation' },
        schema: contract,
        freshMs: 3_600_000,
        staleMs: 86_400_000,
      });
      return { ...reply, source: { ...reply.source, asOf: reply.value?.verifiedAt ?? null } };
    },
  }),
  // The contract of Base's wrapped coin, which will stay verified as long as Base exists.
  probe: (api) => api.contract(8453, '0x4200000000000000000000000000000000000006'),
});
