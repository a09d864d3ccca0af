/** The verdict about a transaction that is handed out, by a reader that knows nothing of what handed it out. */
export interface SigningCheck {
  /** `danger`: it should not be signed. */
  verdict: string;
  findings: readonly { pattern: string; severity: string; address: string | null }[];
}
