import { declare } from '../declared.ts';
import { TOPUP_BOOKS } from './books-rules.ts';
import { TOPUP_PEOPLE } from './personal-data.ts';

export const TOPUP = declare({ name: 'topup', books: TOPUP_BOOKS, people: TOPUP_PEOPLE, variables: {} });
