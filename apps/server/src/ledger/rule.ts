/** What must hold of the books, as a query that finds what breaks it: no row, no finding. */
export interface Rule {
  name: string;
  sql: string;
  say(row: Record<string, unknown>): string;
}
