export const STAYING: readonly string[];
export const PLAYING: readonly string[];
export const ONE_HEAP: Readonly<Record<string, string>>;
export const WAITING: readonly string[];
