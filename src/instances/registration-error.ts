/** Outputs could not be registered; `code` as in `instances.md` section 10, empty where that table has none. */
export class RegistrationFailed extends Error {
  override readonly name = 'RegistrationFailed';
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}
