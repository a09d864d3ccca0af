/**
 * Runs the card provider as a process of its own. From the environment: CARDS_PORT (4023 if absent), CARDS_SECRET_KEY
 * (sk_test_farebox if absent), CARDS_STATE_DIR (nothing is kept if absent), CARDS_WEBHOOK_URL with
 * CARDS_WEBHOOK_SECRET.
 */
import { startCardProvider } from './card-provider.ts';

const DEFAULT_PORT = 4023;
const DEFAULT_SECRET_KEY = 'sk_test_farebox';

const { CARDS_PORT, CARDS_SECRET_KEY, CARDS_STATE_DIR, CARDS_WEBHOOK_URL, CARDS_WEBHOOK_SECRET } =
  process.env;
if (CARDS_WEBHOOK_URL && !CARDS_WEBHOOK_SECRET) {
  throw new Error('CARDS_WEBHOOK_SECRET is needed with CARDS_WEBHOOK_URL');
}
const provider = await startCardProvider({
  stateDir: CARDS_STATE_DIR || null,
  port: Number(CARDS_PORT || DEFAULT_PORT),
  webhooks:
    CARDS_WEBHOOK_URL && CARDS_WEBHOOK_SECRET
      ? [{ url: CARDS_WEBHOOK_URL, secret: CARDS_WEBHOOK_SECRET }]
      : [],
  secretKey: CARDS_SECRET_KEY || DEFAULT_SECRET_KEY,
});
process.stdout.write(`sandbox card provider at ${provider.url}\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void provider.stop().finally(() => process.exit(0)));
}
