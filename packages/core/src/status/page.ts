/** The status as a document for programs, and as a page. */
import { asMarkup } from '../discovery/page-frame.ts';
import type { MadePage } from '../discovery/pages.ts';
import { KEPT_DAYS, type Spells } from './spells.ts';

/** Something that callers use. */
export interface Component {
  /** As in `Spell.component`. */
  id: string;
  kind: 'service' | 'rail' | 'chain';
  name: string;
  up: boolean;
}

/** A part of it: whether it can be used now, and how it is named. */
interface Standing {
  id: string;
  name: string;
  state: 'up' | 'down';
}

interface Incident {
  component: string;
  name: string;
  /** ISO 8601. */
  began: string;
  /** Null while it lasts. */
  ended: string | null;
  minutes: number | null;
}

export interface StatusDocument {
  /** `up`: everything; `partly`: something is not; `down`: nothing is for sale. */
  state: 'up' | 'partly' | 'down';
  version: string;
  /** ISO 8601. */
  asOf: string;
  services: readonly Standing[];
  rails: readonly Standing[];
  chains: readonly Standing[];
  /** The latest first, at most 100; null: the database could not be read. */
  incidents: readonly Incident[] | null;
  /** All of them in the last 90 days; null as above. */
  incidentsTotal: number | null;
  incidentsOfDays: number;
}

/**
 * Makes the document.
 *
 * @param spells null: the database could not be read
 */
export function statusDocument(
  components: readonly Component[],
  spells: Spells | null,
  { nowMs, version }: { nowMs: number; version: string },
): StatusDocument {
  const of = (kind: Component['kind']): Standing[] =>
    components
      .filter((each) => each.kind === kind)
      .map(({ id, name, up }) => ({ id, name, state: up ? 'up' : 'down' }));
  const names = new Map(components.map(({ id, name }) => [id, name]));
  const services = of('service');
  const isDown = services.length > 0 && services.every(({ state }) => state === 'down');
  const isUp = spells !== null && components.every(({ up }) => up);
  return {
    state: isDown ? 'down' : isUp ? 'up' : 'partly',
    version,
    asOf: new Date(nowMs).toISOString(),
    services,
    rails: of('rail'),
    chains: of('chain'),
    incidents:
      spells === null
        ? null
        : spells.spells.map(({ component, beganAtMs, endedAtMs }) => ({
            component,
            name: names.get(component) ?? 'The server',
            began: new Date(beganAtMs).toISOString(),
            ended: endedAtMs === null ? null : new Date(endedAtMs).toISOString(),
            minutes: endedAtMs === null ? null : Math.ceil((endedAtMs - beganAtMs) / 60_000),
          })),
    incidentsTotal: spells?.total ?? null,
    incidentsOfDays: KEPT_DAYS,
  };
}

const HEADLINES: Readonly<Record<StatusDocument['state'], string>> = {
  up: 'Everything works.',
  partly: 'Some of it cannot be used at the moment.',
  down: 'Nothing is for sale at the moment.',
};

/** Makes the page of a document. */
export function statusPage(status: StatusDocument): MadePage {
  return {
    path: '/status',
    title: 'Status',
    description: `What can be used now, and what could not be in the last ${status.incidentsOfDays} days.`,
    asText: false,
    main: [
      '<h1>Status</h1>',
      `<p class="lead">${HEADLINES[status.state]}</p>`,
      `<p>As of ${moment(status.asOf)}. For programs: <a href="/status.json">status.json</a>.</p>`,
      section('Services', status.services),
      section('Ways to pay', status.rails),
      section('Chains', status.chains),
      incidents(status),
    ].join('\n'),
  };
}

/** A table of those that are down, and of all where they are few. */
function section(title: string, standings: readonly Standing[]): string {
  if (standings.length === 0) return '';
  const down = standings.filter(({ state }) => state === 'down');
  const up = standings.length - down.length;
  const rows = standings.length > 12 ? down : standings;
  const table =
    rows.length === 0
      ? ''
      : tableOf(
          title,
          ['Name', 'State'],
          rows.map(({ name, state }) => [asMarkup(name), state]),
        );
  return `<h2>${title}</h2>\n<p>${up} of ${standings.length} can be used.</p>\n${table}`;
}

function incidents({ incidents: all, incidentsTotal, incidentsOfDays }: StatusDocument): string {
  const title = `<h2>The last ${incidentsOfDays} days</h2>\n`;
  if (all === null) return `${title}<p>The database cannot be read at the moment, so nobody knows.</p>`;
  if (all.length === 0) return `${title}<p>Each minute everything could be used.</p>`;
  const more = (incidentsTotal ?? 0) > all.length ? ` The latest ${all.length} of ${incidentsTotal}.` : '';
  const rows = all.map(({ name, began, minutes }) => [
    asMarkup(name),
    moment(began),
    minutes === null ? 'lasts' : `${Math.max(minutes, 1)} min`,
  ]);
  return `${title}<p>When something could not be used, to the minute.${more}</p>\n${tableOf('Incidents', ['What', 'From', 'How long'], rows)}`;
}

function tableOf(label: string, titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = titles.map((title) => `<th scope="col">${title}</th>`).join('');
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`);
  return `<div class="scroll" tabindex="0" role="region" aria-label="${label}"><table class="fields"><thead><tr>${head}</tr></thead><tbody>\n${body.join('\n')}\n</tbody></table></div>`;
}

/** @param iso a time of ours, as ISO 8601 */
function moment(iso: string): string {
  return `<time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time>`;
}
