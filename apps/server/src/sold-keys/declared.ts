import { declare } from '../declared.ts';
import { SOLD_KEY_BOOKS } from './books-rules.ts';

export const SOLD_KEYS = declare({ name: 'soldKeys', books: SOLD_KEY_BOOKS, variables: {} });
