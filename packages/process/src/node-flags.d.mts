export const STAYING: readonly string[];
export const WAITING: readonly string[];
