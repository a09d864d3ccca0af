/**
 * The services as tools of this page, for browsers that hand a page's tools to an agent (WebMCP, a draft:
 * https://webmachinelearning.github.io/webmcp/). Without such a browser nothing is loaded. A call is tried out first, which
 * is free; it is paid with the key that this tab keeps, once the person in front of it agrees.
 */
import { formatUsd } from './amount.js';
import { el } from './dom.js';
import { rememberedKey } from './key-session.js';
import { fencedText, untrustedIn } from './untrusted.js';

const TOOLS = '/.well-known/webmcp.json';
const JSON_TYPE = { 'content-type': 'application/json' };
/** Questions to the person that wait at most. */
const MOST_QUESTIONS = 8;

/** What costs nothing, under the names that the MCP server has for it. */
const FREE = [
  {
    name: 'search_services',
    description: 'Finds services by words or a question: their names, prices and inputSchema. Free.',
    inputSchema: {
      type: 'object',
      properties: { query: { type: 'string', description: 'What is wanted, in plain words' } },
      required: ['query'],
    },
    ask: ({ query }) => fetch(`/x402/catalog?q=${encodeURIComponent(String(query))}`),
  },
  {
    name: 'catalog',
    description: 'All services with their prices, and whether each is for sale now. Free.',
    inputSchema: { type: 'object', properties: {} },
    ask: () => fetch('/x402/catalog'),
  },
  {
    name: 'service_recipe',
    description: 'All that is needed to buy one service: its input, its answer, its price. Free.',
    inputSchema: {
      type: 'object',
      properties: { service: { type: 'string', description: 'Its path, such as ping' } },
      required: ['service'],
    },
    ask: ({ service }) => fetch(`/x402/recipes/${encodeURIComponent(String(service).replaceAll('_', '-'))}`),
  },
  {
    name: 'credit_balance',
    description: 'Balance and caps of the API key that this tab keeps. Free.',
    inputSchema: { type: 'object', properties: {} },
    ask: () => fetch('/api/keys/me', { cache: 'no-store', headers: { 'x-api-key': rememberedKey() } }),
  },
];

/** Registers the tools where the browser takes any. Never throws: a page without them is the same page. */
export async function offerWebTools() {
  // The draft has moved it from the navigator to the document; some browsers still have the older place.
  const context = document.modelContext ?? navigator.modelContext;
  if (typeof context?.registerTool !== 'function') return;
  try {
    const response = await fetch(TOOLS);
    // A server that sells nothing as a tool has no such document.
    const { tools: sold } = response.ok ? await response.json() : { tools: [] };
    const all = [...FREE.map(freeTool), ...sold.map(paidTool)];
    // One that the browser will not take keeps no other out.
    await Promise.allSettled(all.map(async (tool) => context.registerTool(tool)));
  } catch {
    // They could not be loaded. Whoever wants them loads the page again.
  }
}

function freeTool({ name, description, inputSchema, ask }) {
  return {
    name,
    description,
    inputSchema,
    annotations: { readOnlyHint: true },
    execute: async (input) => resultOf(await reached(() => ask(input ?? {}))),
  };
}

function paidTool(tool) {
  const { name, title, description, inputSchema, annotations } = tool;
  return {
    name,
    title,
    description,
    inputSchema,
    annotations,
    execute: async (input, client) => resultOf(await buy(tool, input ?? {}, client), tool),
  };
}

/** One call: tried out, agreed to, and paid with the key that the tab keeps. */
async function buy({ serviceName, endpoint }, input, client) {
  const path = new URL(endpoint).pathname;
  const body = JSON.stringify(input);
  const tried = await reached(() => fetch(`${path}?dryRun=1`, { method: 'POST', headers: JSON_TYPE, body }));
  const key = rememberedKey();
  if (!tried.ok) return tried;
  if (key === '') return { ok: true, answer: { ...tried.answer, howToPay: howToPay(path) } };
  // The price of now: the tool was registered when the page was loaded.
  const agreed = await asked(
    `Pay ${formatUsd(tried.answer.price.amountUsd)} for “${serviceName}”?`,
    input,
    client,
  );
  if (!agreed)
    return {
      ok: false,
      answer: { code: 'NOT_AGREED', message: 'The person did not agree. Nothing was charged.' },
    };
  if (rememberedKey() !== key)
    return {
      ok: false,
      answer: { code: 'KEY_CHANGED', message: 'The key of this tab changed meanwhile. Nothing was charged.' },
    };
  const headers = { ...JSON_TYPE, 'x-api-key': key, 'idempotency-key': crypto.randomUUID() };
  const pay = () => reached(() => fetch(path, { method: 'POST', headers, body }));
  const paid = await pay();
  // With the same Idempotency-Key: what was bought is told again, and not bought again.
  return paid.lost === true ? pay() : paid;
}

function howToPay(path) {
  return `Nothing was charged: this tab has no key. A person opens ${location.origin}/keys, takes a trial key or pastes one, and the tool is called again. Or POST ${location.origin}${path} from a wallet: the 402 has the terms.`;
}

/** What a request brought. An answer that is no JSON is told by its type and size. */
async function reached(send) {
  try {
    const response = await send();
    const type = response.headers.get('content-type') ?? '';
    const answer = /[/+]json\b/.test(type)
      ? await response.json()
      : { mediaType: type, bytes: (await response.arrayBuffer()).byteLength };
    return { ok: response.ok, answer };
  } catch {
    const message = 'The connection broke. The key page shows whether anything was charged.';
    return { ok: false, lost: true, answer: { code: 'CONNECTION_LOST', message } };
  }
}

/**
 * As MCP has it: text, in which what outsiders wrote is fenced, and the same as an object, with paths to it. `untrusted` and
 * `untrustedInErrors`: where it may stand; nowhere in what is ours.
 */
function resultOf({ ok, answer }, { untrusted: inAnswers = [], untrustedInErrors = [] } = {}) {
  const untrusted = untrustedIn(ok ? inAnswers : untrustedInErrors, answer);
  return {
    content: [{ type: 'text', text: fencedText(answer, untrusted) }],
    structuredContent: answer,
    ...(ok ? {} : { isError: true }),
    ...(untrusted.length === 0 ? {} : { _meta: { 'farebox/untrusted': untrusted } }),
  };
}

let questions = 0;
let lastQuestion = Promise.resolve();

/** Asks the person, one question at a time. The browser is told where it can be. */
async function asked(question, input, client) {
  if (questions >= MOST_QUESTIONS) return false;
  questions += 1;
  const ask = () => agreement(question, input);
  const turn = lastQuestion.then(() =>
    typeof client?.requestUserInteraction === 'function' ? client.requestUserInteraction(ask) : ask(),
  );
  lastQuestion = turn.catch(() => {});
  try {
    return (await turn) === true;
  } catch {
    return false;
  } finally {
    questions -= 1;
  }
}

function agreement(question, input) {
  const { promise, resolve } = Promise.withResolvers();
  const dialog = el(
    'dialog',
    { 'aria-labelledby': 'web-tool-question', class: 'web-tool' },
    el('h2', { id: 'web-tool-question' }, question),
    el('p', {}, 'An agent in this browser asks for it, to be paid with the key that this tab keeps.'),
    el(
      'pre',
      { tabindex: '0', 'aria-label': 'What it asks for' },
      el('code', {}, JSON.stringify(input, null, 2)),
    ),
    el(
      'div',
      { class: 'actions' },
      el('button', { type: 'button', onclick: () => dialog.close('yes') }, 'Pay'),
      el(
        'button',
        { type: 'button', class: 'secondary', autofocus: true, onclick: () => dialog.close('no') },
        'Cancel',
      ),
    ),
  );
  dialog.addEventListener('close', () => {
    dialog.remove();
    resolve(dialog.returnValue === 'yes');
  });
  document.body.append(dialog);
  dialog.showModal();
  return promise;
}
