import { act } from './admin-act.js';
import { ask, save } from './admin-session.js';
import { badge, code, figures, recordsTable } from './admin-tables.js';
import { el } from './dom.js';
import { moment } from './moments.js';

const ROLES = ['read', 'support', 'money', 'admin'];
const ABOUT_ROLES = {
  read: 'sees the figures',
  support: 'also finds customers, and freezes accounts',
  money: 'also refunds, grants and sets prices',
  admin: 'also says who may do what, and reads the trail',
};

/** Who is signed in here; for an admin also everybody else, the tokens and the trail. */
export async function operatorsView({ session, tell, again, did }) {
  const parts = [el('h1', { tabindex: '-1' }, 'Operators'), yourself(session)];
  if (session.role === 'admin') {
    const known = await ask('operators');
    parts.push(
      tokensSection(known.tokens, did),
      peopleTable(known.operators, { session, tell, again, did }),
      await trailSection(tell),
    );
  }
  return el('div', {}, ...parts);
}

function yourself({ actor, role, by, issuer, email }) {
  return el(
    'section',
    {},
    figures(
      ['You', actor, 'main'],
      ['Your role', role],
      ['Signed in', by === 'token' ? 'by a token' : 'at the provider'],
    ),
    by === 'token'
      ? el(
          'p',
          { class: 'soft' },
          'A token is for the first hour and for emergencies: it has the role admin, and nobody knows who holds it.',
        )
      : el('p', { class: 'soft' }, `${email ?? 'No verified e-mail address'}, by ${issuer}`),
    el('ul', {}, ...ROLES.map((each) => el('li', {}, el('strong', {}, each), ` ${ABOUT_ROLES[each]}`))),
  );
}

function tokensSection({ configured, on }, did) {
  if (!configured) return el('p', { class: 'soft' }, 'There are no tokens: ADMIN_TOKENS is empty.');
  const button = el(
    'button',
    { type: 'button', class: 'secondary' },
    on ? 'Turn tokens off' : 'Turn tokens on',
  );
  button.addEventListener('click', async () => {
    const done = await act({
      title: on ? 'Turn tokens off' : 'Turn tokens on',
      text: on
        ? 'Nobody opens this page by a token any more. Where the server runs, “npm run operators -- tokens on” turns them on again.'
        : 'The tokens of ADMIN_TOKENS open this page again, with the role admin.',
      confirm: on ? 'Turn off' : 'Turn on',
      danger: on,
      path: 'tokens',
      body: { enabled: !on },
    });
    if (done !== null) did(`Tokens are ${done.on ? 'on' : 'off'}.`);
  });
  return el('p', { class: 'actions' }, `Tokens are ${on ? 'on' : 'off'}. `, button);
}

function peopleTable(operators, { session, tell, again, did }) {
  return recordsTable({
    caption: 'People who have signed in',
    rows: operators,
    none: 'Nobody has signed in at the provider yet.',
    columns: [
      { label: 'Who', of: ({ actor }) => actor },
      {
        label: 'Role',
        of: ({ role, roleSet }) => el('span', {}, badge(role ?? 'none'), roleSet === null ? '' : ' set here'),
      },
      { label: 'Last sign-in', of: ({ lastAt }) => moment(lastAt) },
      { label: 'Sessions', of: ({ sessions }) => sessionsOf(sessions, { session, tell, again }) },
      { label: 'Change', of: (person) => roleChoice(person, did) },
    ],
  });
}

function sessionsOf(sessions, { session, tell, again }) {
  if (sessions.length === 0) return null;
  return el(
    'span',
    {},
    ...sessions.map(({ sessionId, address, beganAt }) => {
      const button = el('button', { type: 'button', class: 'secondary small' }, 'End');
      button.addEventListener('click', async () => {
        try {
          await ask(`sessions/${sessionId}/end`, {});
          again();
        } catch (error) {
          tell('bad', error.message);
        }
      });
      const own = sessionId === session.sessionId;
      return el(
        'span',
        { class: 'actions' },
        `${address}, since `,
        moment(beganAt),
        own ? ' (this one) ' : ' ',
        button,
      );
    }),
  );
}

function roleChoice({ operatorId, actor, roleSet, roleByProvider }, did) {
  const choice = el(
    'select',
    { 'aria-label': `Role of ${actor}` },
    el('option', { value: '', selected: roleSet === null }, `by the provider: ${roleByProvider ?? 'none'}`),
    ...[...ROLES, 'none'].map((role) => el('option', { value: role, selected: role === roleSet }, role)),
  );
  choice.addEventListener('change', async () => {
    const role = choice.value === '' ? null : choice.value;
    const done = await act({
      title: `Change the role of ${actor}`,
      text:
        role === 'none'
          ? 'Every session of this person ends at once.'
          : 'It counts from the next request on.',
      confirm: 'Change',
      danger: role === 'none',
      path: `operators/${operatorId}/role`,
      body: { role },
    });
    if (done === null) choice.value = roleSet ?? '';
    else did('The role is changed.');
  });
  return choice;
}

const KINDS = {
  sign_in: 'signed in',
  sign_out: 'signed out',
  session_ended: 'ended a session',
  role_set: 'changed a role',
  tokens_off: 'turned tokens off',
  tokens_on: 'turned tokens on',
  asked: 'asked for',
  shown: 'was shown',
  export: 'exported',
};

/** What operators did, the newest first. */
async function trailSection(tell) {
  const list = el('section', {});
  const more = async (after) => {
    const found = await ask(`trail${after === null ? '' : `?after=${after}`}`);
    list.append(trailTable(after === null ? 'Trail, newest first' : 'Earlier', found.trail));
    if (found.after === null) return;
    const button = el('button', { type: 'button', class: 'secondary' }, 'Earlier');
    button.addEventListener('click', async () => {
      button.remove();
      await more(found.after).catch((error) => tell('bad', error.message));
    });
    list.append(button);
  };
  const whole = el('button', { type: 'button', class: 'secondary' }, 'Save both logs');
  whole.addEventListener('click', () =>
    save('audit.jsonl', 'audit.jsonl').catch((error) => tell('bad', error.message)),
  );
  list.append(el('p', { class: 'actions' }, whole));
  await more(null);
  return list;
}

function trailTable(caption, rows) {
  return recordsTable({
    caption,
    rows,
    none: 'None.',
    columns: [
      { label: 'When', of: ({ at }) => moment(at) },
      { label: 'Who', of: ({ actor }) => actor },
      { label: 'What', of: ({ kind }) => KINDS[kind] ?? kind },
      { label: 'About', of: ({ about }) => code(aboutText(about)) },
      { label: 'From', of: ({ address }) => address },
    ],
  });
}

function aboutText(about) {
  const { route, ...rest } = about;
  const words = Object.entries(rest)
    .filter(
      ([name, value]) =>
        name !== 'keySha256' && value !== null && !['""', '{}', '[]'].includes(JSON.stringify(value)),
    )
    .map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`);
  return [route, ...words].filter(Boolean).join(', ');
}
