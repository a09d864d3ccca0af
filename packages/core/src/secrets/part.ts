import type { Configured } from '../declared.ts';
import type { House, Part } from '../part.ts';
import { SECRETS } from './declared.ts';
import { createSecretRegister, SECRET_NOTED_EVERY_MS } from './register.ts';

export { SECRETS };

/**
 * Sees that no version of the secret is taken away that something still needs.
 *
 * @param needs.open reads a kept answer; throws when the versions that are given do not open it
 */
export function openSecretRegister(
  { pools, nowMs }: House,
  { settings, secrets }: Configured<typeof SECRETS.variables>,
  { open }: { open(callId: string, body: string): string },
): Part {
  const register = createSecretRegister(pools, {
    secrets: secrets.reveal().versions,
    lostIds: settings.lostIds,
    nowMs,
    canOpen(callId, body) {
      try {
        open(callId, body);
        return true;
      } catch {
        return false;
      }
    },
  });
  return {
    name: 'secrets',
    prepare: (patience) =>
      patience.take(async () => {
        // Admitting may take minutes, and gives a silent database as long: only one that answers is asked.
        await pools.sql`select 1`;
        await register.admit();
      }),
    jobs: [{ name: 'note-secret', intervalMs: SECRET_NOTED_EVERY_MS, run: register.note }],
  };
}
