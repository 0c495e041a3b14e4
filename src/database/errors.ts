/** Why the database cannot be used; the message says what to do about it. */
export class DatabaseError extends Error {
  override readonly name: string = 'DatabaseError';
}

/** Another server process already works on this data folder. */
export class DataFolderInUse extends DatabaseError {
  override readonly name = 'DataFolderInUse';
}
