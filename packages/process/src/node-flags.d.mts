export const STAYING: readonly string[];
export const PLAYING: readonly string[];
export const WAITING: readonly string[];
