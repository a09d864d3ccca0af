/** One style of time on every page: UTC, with the reader's own in the title. */
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const two = (number) => String(number).padStart(2, '0');

/** "23 Nov 2026, 09:52 UTC". @param {string} iso */
export function momentWords(iso) {
  const at = new Date(iso);
  return `${dayWords(iso)}, ${two(at.getUTCHours())}:${two(at.getUTCMinutes())} UTC`;
}

/** "23 Nov 2026". @param {string} iso */
export function dayWords(iso) {
  const at = new Date(iso);
  return `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`;
}

/** The same as an element, with the reader's own time in its title; a dash where there is none. */
export function moment(iso) {
  if (iso === null || iso === undefined) return '—';
  return timeOf(iso, momentWords(iso), localWords(iso));
}

const UNITS = [
  ['day', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
];

/** "4 min ago", where it matters how fresh something is. @param {string} iso @param {number} nowMs */
export function agoWords(iso, nowMs) {
  const passedMs = Math.max(0, nowMs - Date.parse(iso));
  const [unit, ms] = UNITS.find(([, each]) => passedMs >= each) ?? [null, 0];
  if (unit === null) return 'just now';
  const count = Math.floor(passedMs / ms);
  return `${count} ${unit}${unit === 'day' && count !== 1 ? 's' : ''} ago`;
}

/** The same as an element, with the time itself in its title. */
export function ago(iso) {
  return timeOf(iso, agoWords(iso, Date.now()), momentWords(iso));
}

function timeOf(iso, text, title) {
  const element = document.createElement('time');
  element.setAttribute('datetime', iso);
  element.title = title;
  element.textContent = text;
  return element;
}

function localWords(iso) {
  return new Date(iso).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });
}
