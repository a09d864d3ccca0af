/**
 * Which service a message chooses. One that chooses none is told how to, and which skills its words are about: of one that
 * they are clearly about, the terms. Words choose nothing, so no task waits for a payment because of them.
 */
import type { CatalogLine, Service } from '../service/define.ts';
import { fittingWith } from '../service/fitting.ts';
import type { Shelf } from '../service/shelf.ts';
import { toolNameOf } from '../service/tool-name.ts';
import { nearest } from '../words/nearest.ts';
import type { Wish } from './messages.ts';
import type { StatusMessage } from './tasks.ts';

const MAX_SUGGESTED = 5;

export interface Choices {
  shelf: Pick<Shelf, 'services' | 'leftOut' | 'soldBefore'>;
  baseUrl: string;
  /** All services as the catalog shows them, which tells what is for sale now. */
  catalog(): readonly CatalogLine[];
}

/** @returns what its caller is told where no service is chosen */
export function choose(
  choices: Choices,
  wish: Wish,
  text: string,
): { service: Service; isGone: boolean } | { statusMessage: StatusMessage } {
  const { services, leftOut, soldBefore } = choices.shelf;
  if (wish.isAmbiguous)
    return { statusMessage: help(choices, 'ONE_SKILL_A_MESSAGE', 'A message can ask for one skill.', []) };
  const { skill } = wish;
  if (skill === null) return { statusMessage: aboutWords(choices, text) };
  const isAsked = (each: Service) => each.path === skill || toolNameOf(each) === skill;
  const service = services.find(isAsked);
  if (service !== undefined) return { service, isGone: false };
  const gone = soldBefore.find(isAsked);
  if (gone !== undefined) return { service: gone, isGone: true };
  const path = skill.replaceAll('_', '-').slice(0, 80);
  if (leftOut.includes(path))
    return { statusMessage: help(choices, 'NOT_SOLD_HERE', `This shop does not sell ${path}.`, []) };
  const known = services.map((each) => each.path);
  const near = nearest(path, known, MAX_SUGGESTED);
  return {
    statusMessage: help(choices, 'UNKNOWN_SERVICE', `There is no skill ${skill.slice(0, 80)}.`, near),
  };
}

/** The skill is sold no more, and only what was bought of it is given again. */
export function soldNoMore(choices: Choices, { path }: Service): StatusMessage {
  return help(choices, 'NOT_SOLD_HERE', `This shop does not sell ${path}.`, []);
}

/** Answers words that name no skill. */
function aboutWords(choices: Choices, words: string): StatusMessage {
  const { fitting, winner } = fittingWith(words, choices.shelf.services, MAX_SUGGESTED);
  const paths = fitting.map(({ path }) => path);
  const statusMessage = help(
    choices,
    'SKILL_REQUIRED',
    'This message names no skill, and none is guessed.',
    paths,
  );
  if (winner === null) return statusMessage;
  const isForSale = choices.catalog().some(({ path, available }) => path === winner.path && available);
  return isForSale ? { ...statusMessage, ...termsOf(winner, statusMessage) } : statusMessage;
}

/**
 * The terms of a skill in words alone: wallets pay terms in metadata by themselves, and nobody has asked for this skill by its
 * name yet.
 */
function termsOf(
  { path, name, summary, priceUsd, example }: Service,
  { data }: StatusMessage,
): StatusMessage {
  const wanted = { skill: path, input: example };
  return {
    text: `Words alone buy nothing. What you describe sounds like the skill ${path} (${name}): ${summary} It costs ${priceUsd} USD a call, charged only with an answer. To buy it send ${JSON.stringify(wanted)} in this task, with an input of your own, as a data part or as the only text: with an API key in the header X-API-KEY, or without one to be told how a wallet pays. Nothing was charged.`,
    data: { ...data, send: { kind: 'data', data: wanted } },
  };
}

/** The input was longer than a task keeps, and has to come with the payment. */
export function inputAgain({ path }: Service): StatusMessage {
  return {
    text: `The input of this task was too long to be kept, or has a claimSecret, which is not kept. Send it again beside the payment, as a data part {"skill":"${path}","input":{…}}. The payment was not used.`,
    data: { code: 'INPUT_REQUIRED', skill: path, charged: false },
  };
}

/** A key pays for any message that asks for something, so words alone do not. */
export function sayToBuy({ path, priceUsd }: Service): StatusMessage {
  return {
    text: `Words alone buy nothing. To buy ${path} for ${priceUsd} USD send a data part {"skill":"${path}","input":{…}} in this task. Nothing was charged.`,
    data: { code: 'INPUT_REQUIRED', skill: path, charged: false },
  };
}

function help(
  { shelf, baseUrl }: Choices,
  code: string,
  what: string,
  suggested: readonly string[],
): StatusMessage {
  const skills = suggested.flatMap((path) => shelf.services.find((each) => each.path === path) ?? []);
  const list = skills.map(({ path, priceUsd, summary }) => `\n- ${path} (${priceUsd} USD): ${summary}`);
  return {
    text: `${what} Send a data part {"skill":"…","input":{…}} in this task, or the same JSON as the only text. Nothing was charged.${list.length === 0 ? '' : ` These may be what you look for:${list.join('')}`}`,
    data: {
      code,
      message: what,
      charged: false,
      send: { kind: 'data', data: { skill: 'ping', input: {} } },
      skills: skills.map(({ path, name, priceUsd, example }) => ({ skill: path, name, priceUsd, example })),
      card: `${baseUrl}/.well-known/agent-card.json`,
      catalog: `${baseUrl}/x402/catalog`,
    },
  };
}
