/** The secrets that messages are signed with. https://www.standardwebhooks.com */
import { randomBytes } from 'node:crypto';

const SECRET_BYTES = 32;

/** A new one, as receivers know them: `whsec_` and base64. */
export function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}

/** Seals what is stored, for one row. The house's seal of kept answers does. */
export interface Seal {
  seal(belongsTo: string, text: string): string;
  /** @throws when the versions of the server's secret that are given do not open it */
  open(belongsTo: string, sealed: string): string;
}

/** The purpose that a webhook's secret is sealed for: moved to another row it cannot be opened. */
export const sealedFor = (webhookId: string) => `webhook:${webhookId}`;

/** A secret that another one replaced, as it is stored. */
export interface FormerSecret {
  sealed: string;
  /** It signs until then; in ISO 8601. */
  until: string;
}

/** Those of them that still sign, in the same order. */
export function stillSigning(former: readonly FormerSecret[], nowMs: number): readonly FormerSecret[] {
  return former.filter(({ until }) => Date.parse(until) > nowMs);
}
