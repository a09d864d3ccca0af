/** How services have answered in the last day, for buyers who compare them. */

/** The last day of one service, or of all together. */
export interface DayFigures {
  /** From a call's beginning to its end, of answered ones. */
  medianMs: number;
  /** Of 100 calls, without those that failed by their buyer's own fault; with one place. */
  answeredPercent: number;
}

export interface ServiceFigures {
  /** Null where too few calls were made to say anything. */
  of(service: string): DayFigures | null;
  /** All services together; null where too few calls were made. */
  ofAll(): DayFigures | null;
  /** When they were measured; null: never. */
  measuredAtMs(): number | null;
}

export const NO_FIGURES: ServiceFigures = {
  of: () => null,
  ofAll: () => null,
  measuredAtMs: () => null,
};
