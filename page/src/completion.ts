// Completion of the SQL box: names of tables and columns, keywords of SQL.
import type { Table } from './api';

const KEYWORDS = ('SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT ON USING AND OR NOT NULL IS IN BETWEEN LIKE AS DISTINCT ' +
  'HAVING WITH UNION ALL CASE WHEN THEN ELSE END DESC ASC count sum avg min max round').split(' ');

/** What may stand where the cursor is: the start of the word, and candidates. */
export function candidates(text: string, cursor: number, tables: Table[]): { start: number; words: string[] } {
  const before = text.slice(0, cursor);
  const word = /(?:(\w+)\.)?(\w*)$/.exec(before);
  const [, owner, begun = ''] = word ?? [];
  const start = cursor - begun.length;
  const table = owner && tables.find((each) => each.name === owner || aliased(text, each.name) === owner);
  const mentioned = tables.filter((each) => new RegExp(`\\b${each.name}\\b`, 'i').test(text));
  const words = table ? table.columns.map((column) => column.name)
    : owner ? []
      : /\b(?:from|join)\s+\w*$/i.test(before) ? tables.map((each) => each.name)
        : [...mentioned.flatMap((each) => each.columns.map((column) => column.name)), ...tables.map((each) => each.name), ...KEYWORDS];
  const low = begun.toLowerCase();
  const fitting = [...new Set(words)].filter((each) => each.toLowerCase().startsWith(low) && each !== begun);
  return { start, words: fitting.slice(0, 12) };
}

function aliased(text: string, table: string): string | undefined {
  return new RegExp(`\\b${table}\\s+(?:as\\s+)?(\\w+)`, 'i').exec(text)?.[1];
}
