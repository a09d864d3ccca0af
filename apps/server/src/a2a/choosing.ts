/** Which service a message chooses. One that chooses none is told how to, and which skills its words are about. */
import type { CatalogLine, Service } from '../services/define.ts';
import { fittingBest } from '../services/fitting.ts';
import { toolNameOf } from '../services/tool-name.ts';
import { nearest } from '../words/nearest.ts';
import type { Wish } from './messages.ts';
import type { Told } from './tasks.ts';

const MAX_SUGGESTED = 5;

export interface Shelf {
  services: readonly Service[];
  /** Paths of services that there are and that are not sold here. */
  leftOut: readonly string[];
  baseUrl: string;
  catalog(): readonly CatalogLine[];
}

/** @returns what its caller is told where no service is chosen */
export function choose(shelf: Shelf, wish: Wish, text: string): { service: Service } | { told: Told } {
  const { services, leftOut } = shelf;
  if (wish.isAmbiguous)
    return { told: help(shelf, 'ONE_SKILL_A_MESSAGE', 'A message can ask for one skill.', []) };
  const { skill } = wish;
  if (skill === null) {
    const found = fittingBest(text.slice(0, 2_000), shelf.catalog(), MAX_SUGGESTED);
    const paths = found.map(({ path }) => path);
    return {
      told: help(shelf, 'SKILL_REQUIRED', 'This message names no skill, and none is guessed.', paths),
    };
  }
  const service = services.find((each) => each.path === skill || toolNameOf(each) === skill);
  if (service !== undefined) return { service };
  const path = skill.replaceAll('_', '-').slice(0, 80);
  if (leftOut.includes(path))
    return { told: help(shelf, 'NOT_SOLD_HERE', `This shop does not sell ${path}.`, []) };
  const known = services.map((each) => each.path);
  const near = nearest(path, known, MAX_SUGGESTED);
  return { told: help(shelf, 'UNKNOWN_SERVICE', `There is no skill ${skill.slice(0, 80)}.`, near) };
}

/** The input was longer than a task keeps, and has to come with the payment. */
export function inputAgain({ path }: Service): Told {
  return {
    text: `The input of this task was too long to be kept, or has a claimSecret, which is not kept. Send it again beside the payment, as a data part {"skill":"${path}","input":{…}}. The payment was not used.`,
    data: { code: 'INPUT_REQUIRED', skill: path, charged: false },
  };
}

/** A key pays for any message that asks for something, so words alone do not. */
export function sayToBuy({ path, priceUsd }: Service): Told {
  return {
    text: `Words alone buy nothing. To buy ${path} for ${priceUsd} USD send a data part {"skill":"${path}","input":{…}} in this task. Nothing was charged.`,
    data: { code: 'INPUT_REQUIRED', skill: path, charged: false },
  };
}

function help({ services, baseUrl }: Shelf, code: string, what: string, suggested: readonly string[]): Told {
  const skills = suggested.flatMap((path) => services.find((each) => each.path === path) ?? []);
  const list = skills.map(({ path, priceUsd, summary }) => `\n- ${path} (${priceUsd} USD): ${summary}`);
  return {
    text: `${what} Send a data part {"skill":"…","input":{…}} in this task. Nothing was charged.${list.length === 0 ? '' : ` These may be what you look for:${list.join('')}`}`,
    data: {
      ...{ code, message: what, charged: false },
      send: { kind: 'data', data: { skill: 'ping', input: {} } },
      skills: skills.map(({ path, name, priceUsd, example }) => ({ skill: path, name, priceUsd, example })),
      card: `${baseUrl}/.well-known/agent-card.json`,
      catalog: `${baseUrl}/x402/catalog`,
    },
  };
}
