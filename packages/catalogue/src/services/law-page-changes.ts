/** Changes of official pages as a service that quotes the law tells them. */

/** A page that has changed since it was read. */
export interface LawPageChange {
  /** When this server first read it, after the rule base was last written (ISO 8601). */
  firstReadAt: string;
  /** When another text was first seen there (ISO 8601). */
  changedAt: string;
}

export interface LawPageChanges {
  /** The pages that are known to have changed since the rule base was last written, by address. A page that is not among them may have too. */
  changed(): Promise<ReadonlyMap<string, LawPageChange>>;
}
