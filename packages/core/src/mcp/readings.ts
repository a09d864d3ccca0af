/** The readings that an MCP client has without calling a tool: documents as resources, and ways to ask as prompts. */
import type { CatalogLine } from '../service/define.ts';
import { toolNameOf } from '../service/tool-name.ts';
import type { Asker, AskInside } from './inside.ts';

interface Reading {
  uri: string;
  name: string;
  title: string;
  description: string;
  mimeType: string;
  /** Where HTTP has it. */
  address: string;
}

const READINGS: readonly Reading[] = [
  {
    uri: 'farebox://catalog',
    name: 'catalog',
    title: 'Catalog',
    description: 'All services with their prices and whether each is for sale now.',
    mimeType: 'application/json',
    address: '/x402/catalog',
  },
  {
    uri: 'farebox://how-to-pay',
    name: 'how-to-pay',
    title: 'How to pay',
    description:
      'From nothing to a first answer, step by step: by a free key, a card, an x402 wallet or MPP.',
    mimeType: 'application/json',
    address: '/.well-known/agent-instructions.json',
  },
  {
    uri: 'farebox://overview',
    name: 'overview',
    title: 'Overview',
    description: 'What this server is and where everything is described, in plain text.',
    mimeType: 'text/plain',
    address: '/llms.txt',
  },
];
const SERVICE_URI = 'farebox://services/';
const SERVICE_TEMPLATE = {
  uriTemplate: `${SERVICE_URI}{service}`,
  name: 'service',
  title: 'A service',
  description: 'All that is needed to buy one service: input, answer, price, sources, ways to pay.',
  mimeType: 'application/json',
};

const HOW_TO_PAY = {
  name: 'how_to_pay',
  title: 'How do I pay here?',
  description: 'Explains the ways to pay for a tool, and which of them this connection can use.',
  arguments: [{ name: 'tool', description: 'The tool that is to be paid for', required: false }],
};
const FIND = {
  name: 'find_service',
  title: 'Find a service for a task',
  description: 'Finds the services that help with a task, and what they cost together.',
  arguments: [{ name: 'task', description: 'What is to be done', required: true }],
};
const MAX_ARGUMENT = 2_000;

export interface Readings {
  resources(): { resources: readonly object[] };
  templates(): { resourceTemplates: readonly object[] };
  /** @returns null when there is no such resource */
  read(uri: string, asker: Asker): Promise<{ contents: readonly object[] } | null>;
  prompts(): { prompts: readonly object[] };
  /** @returns null when there is no such prompt, or it lacks what it needs */
  prompt(name: string, given: Readonly<Record<string, unknown>>): object | null;
}

export function createReadings(ask: AskInside, catalog: () => readonly CatalogLine[]): Readings {
  const services = () =>
    catalog().map(({ path, name, summary }) => ({
      uri: SERVICE_URI + path,
      name: path,
      title: name,
      description: summary,
      mimeType: 'application/json',
    }));
  return {
    resources: () => ({
      resources: [...READINGS.map(({ address, ...shown }) => shown), ...services()],
    }),
    templates: () => ({ resourceTemplates: [SERVICE_TEMPLATE] }),
    async read(uri, asker) {
      const address = READINGS.find((each) => each.uri === uri)?.address ?? recipeAt(uri, catalog());
      if (address === null) return null;
      const { status, body, contentType } = await ask(address, asker);
      if (status !== 200) return null;
      return { contents: [{ uri, mimeType: contentType.split(';')[0], text: body }] };
    },
    prompts: () => ({ prompts: [HOW_TO_PAY, FIND] }),
    prompt(name, given) {
      if (name === HOW_TO_PAY.name) return promptOf(HOW_TO_PAY.description, howToPay(textOf(given.tool)));
      const task = textOf(given.task);
      if (name !== FIND.name || task === '') return null;
      return promptOf(FIND.description, finding(task));
    },
  };
}

/** @returns null when no service has this address */
function recipeAt(uri: string, catalog: readonly CatalogLine[]): string | null {
  if (!uri.startsWith(SERVICE_URI)) return null;
  const asked = uri.slice(SERVICE_URI.length);
  const line = catalog.find((each) => each.path === asked || toolNameOf(each) === asked);
  return line === undefined ? null : `/x402/recipes/${line.path}`;
}

const textOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, MAX_ARGUMENT) : '');

function promptOf(description: string, text: string) {
  return { description, messages: [{ role: 'user', content: { type: 'text', text } }] };
}

function howToPay(tool: string): string {
  const subject = tool === '' ? 'a tool of this server' : `the tool ${tool} of this server`;
  return [
    `Tell me how I can pay for ${subject}, and what it costs.`,
    'Read the resource farebox://how-to-pay, and call service_recipe for the tool.',
    'Say which of these this connection can use now: an API key in the header X-API-KEY (credit_balance shows its credit; get_trial_key gives a free one), an x402 payment in _meta["x402/payment"], an MPP credential in _meta["org.paymentauth/credential"].',
    'Do not buy anything yet.',
  ].join('\n');
}

function finding(task: string): string {
  return [
    `This is what I want to do: ${task}`,
    'Find the services of this server that help with it: call search_services with a few words at a time.',
    'For each that fits, say what it answers, where its data comes from (service_recipe tells), what a call costs and whether it is for sale now. Add up what the whole task costs.',
    'Do not buy anything before I agree.',
  ].join('\n');
}
