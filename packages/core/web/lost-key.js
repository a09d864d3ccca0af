/** The part of the return page by which a person gets at the key, when there is no agent to fetch it. */
import { byId, notice } from './dom.js';
import { momentWords } from './moments.js';
import { post, whileBusy } from './post.js';
import { freshKey } from './trial-key.js';

/** What holds here alone: elsewhere a key is shown once. */
const AGAIN_FOR_A_WHILE =
  'Copy it now. This page shows it again for two minutes, until it is used; after that nobody can.';

const standing = byId('key-standing');
const show = byId('show-key');
const mail = byId('mail-key');
const outcome = byId('key-outcome');

/**
 * Says whether somebody has had the key, and offers it, or a new one by mail.
 *
 * @param {{ sessionId: string, proof: string|null, isOwnTab: boolean }} payment `proof` null: the link came without it
 */
export async function offerKey({ sessionId, proof, isOwnTab }) {
  show.onclick = () => whileBusy(show, () => reveal());
  mail.onclick = () => whileBusy(mail, () => sendLink());
  if (proof === null) return;
  await look();

  async function look(reveal = false) {
    const { body } = await post('checkout/hand-over', { sessionId, proof, reveal });
    if (body?.success !== true || body.state === 'no_key') return null;
    byId('for-person').hidden = isOwnTab && body.state !== 'over';
    // Who has the key has nothing to wait for.
    if (body.deliveredAt !== null) byId('for-agent').hidden = true;
    const had = body.deliveredAt === null ? '' : ` at ${momentWords(body.deliveredAt)}`;
    const by =
      body.deliveredTo === 'page' ? 'The key was shown on this page' : 'Your agent has fetched the key';
    standing.textContent =
      {
        waiting: 'No agent has fetched the key yet. If you have none, show the key here.',
        open: `${by}${had}. For two minutes, and until it is used, it can be shown again.`,
        over: `${by}${had}. It is not shown again. If it is lost, a new key ends it.`,
      }[body.state] ?? '';
    show.hidden = body.state === 'over';
    mail.hidden = body.state !== 'over';
    return body;
  }

  async function reveal() {
    const body = await look(true);
    if (body === null)
      return outcome.replaceChildren(notice('bad', 'The server cannot be reached. Try again.'));
    if (body.apiKey !== undefined)
      outcome.replaceChildren(freshKey(body.apiKey, 'Your key.', AGAIN_FOR_A_WHILE));
    else outcome.replaceChildren();
  }

  async function sendLink() {
    const { ok, body } = await post('checkout/mail-key', { sessionId });
    outcome.replaceChildren(
      ok
        ? notice('good', `A link was sent to ${body.to}. It works once, for 24 hours.`)
        : notice('warn', body?.message ?? 'The server cannot be reached. Nothing was sent.'),
    );
  }
}
