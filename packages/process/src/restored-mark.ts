/** The file in a data folder that says that `npm run restore` has made it, until a server has seen it. */
export const RESTORED_MARK = 'restored.json';
