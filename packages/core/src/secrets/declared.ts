import { z } from 'zod';
import { declare, isTooRegular, list } from '../declared.ts';
import { secretsOf } from './secrets.ts';

export const SECRETS = declare({
  name: 'secrets',
  variables: {
    versions: {
      name: 'FAREBOX_SECRET',
      describe:
        'Secrets for HMACs of callers’ and pictures’ addresses, for keys that are delivered later, for stored answers and for the key that signs the agent card, comma-separated, at least 32 characters each: the first is used for new ones, all are recognized. Same on all replicas',
      shape: z
        .string()
        // One secret is taken as it is; between several, blanks are not part of any.
        .transform((value) => (value.includes(',') ? value.split(',').map((each) => each.trim()) : [value]))
        .refine(
          (values) => values.every((value) => value.length >= 32),
          'must have at least 32 characters each',
        )
        .refine((values) => new Set(values).size === values.length, 'must not name one twice')
        .refine((values) => values.length <= 16, 'must be 16 at most')
        .transform(secretsOf),
      fallback: null,
      required: true,
      secret: true,
    },
    lostIds: {
      name: 'FAREBOX_SECRETS_LOST',
      describe:
        'Ids of lost secrets, comma-separated, as the refused start named them. Everything that needs them is given up',
      shape: list(z.string().regex(/^[0-9a-f]{16}$/, 'must be the ids that the start named')),
      fallback: '',
    },
  },
  problems: ({ versions }, { production }) =>
    production && versions?.all.some(({ value }) => isTooRegular(value, 12)) === true
      ? ['FAREBOX_SECRET: is too regular to be a secret']
      : [],
});
