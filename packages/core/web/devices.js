import { formatUsd } from './amount.js';
import { fleetMap, readingsChart } from './devices-view.js';
import { byId, codeBlock, el, notice } from './dom.js';
import { rememberedKey, rememberKey } from './key-session.js';

const form = byId('key-form');
const input = byId('key');
const message = byId('message');
const board = byId('board');
/** So much of a key may be seen over a shoulder, as in the lists of keys. */
const SHOWN_OF_KEY = 12;
let chosen = null;

/** One request about the key's devices. Answers the body, or throws an `Error` that may be shown. */
async function ask(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      cache: 'no-store',
      headers: {
        'x-api-key': rememberedKey(),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch {
    throw new Error('The server could not be reached.');
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.message ?? `The server answered ${response.status}.`);
  return answer;
}

async function showDevices() {
  if (rememberedKey() === '') return showBoard(false);
  try {
    const { devices, earnings } = await ask('GET', '/api/devices');
    render(devices, earnings);
    showBoard(true);
    message.replaceChildren();
    const shown = devices.find(({ deviceId }) => deviceId === chosen) ?? devices[0];
    await showChart(shown?.deviceId ?? null);
  } catch (error) {
    showBoard(false);
    message.replaceChildren(notice('bad', error.message));
  }
}

/** With a key open, its devices come first; the box for another key is a button away. */
function showBoard(isOpen) {
  board.hidden = !isOpen;
  byId('prefix').textContent = `${rememberedKey().slice(0, SHOWN_OF_KEY)}…`;
  for (const each of [form, byId('lead')]) each.hidden = isOpen;
}

/** Why some of what is due waits longer than usual. */
const HELD_FOR = {
  new_card: 'Some of it waits for a card payment of your customer to be seven days old.',
  payer_owes: 'Some of it waits because a payment of your customer went back.',
  no_usable_key: 'Nothing is paid out while your account has no key that works.',
};

function render(devices, earnings) {
  byId('earnings').replaceChildren(
    figure('Earned', formatUsd(earnings.earnedUsd), 'main'),
    figure('Paid to your balance', formatUsd(earnings.paidUsd)),
    figure('Held', formatUsd(earnings.dueUsd)),
    ...earnings.heldFor.map((reason) => el('p', { class: 'soft' }, HELD_FOR[reason] ?? reason)),
    figure('Calls sold', String(earnings.calls)),
    figure('Your share', `${earnings.sharePercent}%`),
  );
  if (devices.length === 0) {
    byId('map').replaceChildren();
    byId('list').replaceChildren(
      el(
        'p',
        { class: 'soft' },
        'You have no devices yet. Register one below: it can report as soon as it has its secret.',
      ),
    );
    return;
  }
  byId('map').replaceChildren(fleetMap(devices, showChart));
  byId('list').replaceChildren(tableOf(devices));
}

function tableOf(devices) {
  const head = ['Device', 'Last reading', 'When', 'State'].map((name) => el('th', { scope: 'col' }, name));
  return el(
    'table',
    { class: 'records devices' },
    el('thead', {}, el('tr', {}, ...head)),
    el(
      'tbody',
      {},
      ...devices.map((device) =>
        el(
          'tr',
          {},
          el(
            'th',
            { scope: 'row' },
            el(
              'button',
              { type: 'button', class: 'secondary', onclick: () => void showChart(device.deviceId) },
              device.deviceId,
            ),
          ),
          el('td', { 'data-label': 'Last reading' }, valuesOf(device)),
          el('td', { 'data-label': 'When' }, device.lastAt === null ? 'never' : timeOf(device.lastAt)),
          el('td', { 'data-label': 'State' }, stateOf(device)),
        ),
      ),
    ),
  );
}

function valuesOf({ lastReading, sensors }) {
  const values = Object.entries(lastReading?.values ?? {});
  return values.length === 0
    ? '–'
    : values.map(([name, value]) => `${name} ${value} ${sensors[name] ?? ''}`).join(', ');
}

function stateOf({ status, public: isPublic, simulated, lastRefusal }) {
  return [
    status === 'active' ? (isPublic ? 'sold to everybody' : 'private') : status,
    simulated ? 'simulated' : null,
    lastRefusal === null ? null : `refused: ${lastRefusal.reason}`,
  ]
    .filter(Boolean)
    .join(' · ');
}

const timeOf = (iso) => `${iso.slice(0, 16).replace('T', ' ')} UTC`;

async function showChart(deviceId) {
  chosen = deviceId;
  const chart = byId('chart');
  byId('last-day').hidden = deviceId === null;
  if (deviceId === null) return chart.replaceChildren();
  try {
    const { readings, sensors } = await ask('GET', `/api/devices/${encodeURIComponent(deviceId)}/readings`);
    if (chosen === deviceId) chart.replaceChildren(...readingsChart(deviceId, readings, sensors));
  } catch (error) {
    chart.replaceChildren(notice('bad', error.message));
  }
}

function figure(name, value, kind = '') {
  return el('div', { class: kind }, el('dt', {}, name), el('dd', {}, value));
}

/** `temperature=celsius, humidity=percent` as the server takes it. */
function sensorsIn(text) {
  const pairs = text
    .split(',')
    .map((part) => part.split('=').map((each) => each.trim()))
    .filter(([name]) => name !== '');
  return Object.fromEntries(pairs.map(([name, unit = '']) => [name, unit]));
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  rememberKey(input.value.trim());
  input.value = '';
  void showDevices();
});
byId('forget').addEventListener('click', () => {
  rememberKey('');
  void showDevices();
});
byId('another').addEventListener('click', () => {
  form.hidden = false;
  input.focus();
});
byId('refresh').addEventListener('click', () => void showDevices());
/** The command of a first report, where the shop has a broker. The secret stands in it by its variable's name only. */
function firstReport({ deviceId, mqtt }, sensors) {
  if (mqtt === null) return [];
  const { hostname, port } = new URL(mqtt.url);
  const values = Object.fromEntries(Object.keys(sensors).map((name) => [name, 1]));
  const report = `-m '{"at":"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'","values":${JSON.stringify(values)}}'`;
  const command = `mosquitto_pub -h ${hostname} -p ${port} --cafile "$CA" -u ${deviceId} -P "$SECRET" \\\n  -i ${deviceId} -q 1 -t ${mqtt.topic} ${report}`;
  return [
    el(
      'p',
      { class: 'soft' },
      'Its first report, with the secret in ',
      el('code', {}, 'SECRET'),
      ' and the file of the certificate authorities that you trust in ',
      el('code', {}, 'CA'),
      ':',
    ),
    codeBlock(command, 'the command of a first report'),
  ];
}

byId('register-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const told = byId('register-message');
  try {
    const made = await ask('POST', '/api/devices', {
      deviceId: byId('device-id').value.trim(),
      public: byId('public').checked,
      sensors: sensorsIn(byId('sensors').value),
    });
    told.replaceChildren(
      notice('good', el('p', {}, `${made.deviceId} is registered. Save its secret now: it is shown once.`)),
      codeBlock(made.secret, 'the secret'),
      ...firstReport(made, sensorsIn(byId('sensors').value)),
    );
    // A shop may have no guides.
    byId('how').hidden = document.querySelector('footer a[href="/docs/guides"]') === null;
    await showDevices();
  } catch (error) {
    told.replaceChildren(notice('bad', error.message));
  }
});

// A shop may have no guides.
byId('how').hidden = document.querySelector('footer a[href="/docs/guides"]') === null;
await showDevices();
