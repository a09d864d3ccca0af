/**
 * The page of a mailed link. Opening it does nothing, because programs open links of mails: a person presses the button.
 * What stands behind the # is taken out of the address at once, and sent only in a body.
 */
import { byId, notice } from './dom.js';
import { post, whileBusy } from './post.js';
import { freshKey } from './trial-key.js';

const make = byId('make');
const outcome = byId('outcome');

const named = /^#([\w-]{43})$/.exec(location.hash)?.[1];
const token = named ?? history.state?.token ?? null;
history.replaceState({ token }, '', location.pathname);

if (token === null)
  outcome.replaceChildren(notice('warn', 'This address is not a whole link. Open the one in the mail.'));
else make.hidden = false;

// Another mailed link that is opened in this tab changes nothing but what stands behind the #.
addEventListener('hashchange', () => location.reload());

make.addEventListener('click', () =>
  whileBusy(make, async () => {
    const { ok, status, body } = await post('new-key', { token });
    if (ok) {
      history.replaceState(null, '', location.pathname);
      make.hidden = true;
      outcome.replaceChildren(freshKey(body.apiKey, 'Your new key. All others of this credit have ended.'));
    } else {
      const message =
        body?.message ?? 'The server cannot be reached. Nothing has changed; press the button again.';
      // A link that has ended does not begin again.
      make.hidden = status === 410;
      outcome.replaceChildren(notice('warn', message));
    }
  }),
);
