const SECONDS: Readonly<Record<string, number>> = { d: 86_400, h: 3_600 };
const MAX_SECONDS = 3_650 * 86_400;

/** Reads how much time is to pass, from one hour to ten years. @returns seconds; null when the words name no such time, or more than one */
export function secondsAsked([asked, ...more]: readonly string[]): number | null {
  const [, count, unit] = /^([1-9]\d{0,4})([dh])$/.exec(asked ?? '') ?? [];
  const seconds = Number(count) * (SECONDS[unit ?? ''] ?? Number.NaN);
  return Number.isNaN(seconds) || seconds > MAX_SECONDS || more.length > 0 ? null : seconds;
}
