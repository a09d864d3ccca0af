/** The file that says that a folder is a whole backup. */
export const BACKUP_MARK = 'backup.json';
