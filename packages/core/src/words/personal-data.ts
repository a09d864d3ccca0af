/**
 * The declaration of people's data that a part keeps: the source of `npm run person`, of the table in
 * docs/personal-data.md, and of the test that goes over every column of the database.
 *
 * In the SQL of a rule these words stand for a person: `:email` their address in lower case, `:mention` a regular expression that
 * finds it in a text in lower case, `:accounts` the numbers of their accounts and `:bought` those of accounts whose keys they
 * bought (both `bigint[]`), and `:now` the time.
 */

/** A table, or some rows of one, that hold something about people. */
export interface PersonalTable {
  table: string;
  /** The content, as the table of the documents says it. */
  what: string;
  why: string;
  /** How long it stays without an erasure, with the variable that says so, if there is one. */
  kept: string;
  /** The columns that hold it: names, addresses, free text, ids of others, or digests of these. */
  columns: readonly string[];
  /** Which rows are a person's, in SQL. */
  whose: string;
  /** The effect of an erasure on these rows: they go, columns get another value, or they stay as they are, and why. */
  erasure: { rows: 'deleted' } | { set: Readonly<Record<string, string>>; words: string } | { stays: string };
  /** Columns that an export leaves out: they open something, or are digests of what does. */
  withheld?: readonly string[];
}

/** Why a person cannot be erased. */
export interface Obstacle {
  /** The word that an operator overrides it by, in `--despite`; null: it has to be waited for. */
  despite: string | null;
  /** The query of what stands in the way: the first row is told. */
  sql: string;
  /** Says what to do, or to wait for. */
  say(row: Readonly<Record<string, string>>): string;
}

/** The data about people that a part keeps, and how it is found. */
export interface PersonalData {
  /** In the order in which an erasure goes over them: rows that others are found by come last. */
  tables: readonly PersonalTable[];
  obstacles?: readonly Obstacle[];
  /** Queries of accounts and the address that each is known by, in columns `account_id` and `email`. */
  known?: readonly string[];
  /** Queries of further addresses that the part keeps, in a column `email`. */
  addresses?: readonly string[];
  /** Queries of the card provider's names of a person, in a column `customer`. */
  customers?: readonly string[];
  /** Queries of accounts whose keys the accounts of a person bought, in a column `account_id`. */
  bought?: readonly string[];
}
