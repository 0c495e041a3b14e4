/** The one place where addresses are built. */

export const API_PREFIX = '/api/v1/';

/** Addresses as one caller sees them: they carry the scheme and host of the request. */
export class Links {
  /** Scheme and host, such as `http://127.0.0.1:8000`. */
  readonly origin: string;
  /** Base of all API addresses. */
  readonly api: string;
  /** Base of the administration API's addresses. */
  readonly admin: string;

  constructor(origin: string, adminPrefix: string) {
    this.origin = origin;
    this.api = `${origin}${API_PREFIX}`;
    this.admin = `${origin}${adminPrefix}api/v1/`;
  }

  /** @param target path below the API; `admin:` in front names the administration API */
  to(target: string): string {
    return target.startsWith('admin:') ? this.admin + target.slice('admin:'.length) : this.api + target;
  }
}

/** Puts values, such as the numbers of the present path, into a template such as `groups/{id}/users/`. */
export function fillPath(template: string, values: Readonly<Record<string, unknown>>): string {
  if (!template.includes('{')) return template;
  return template.replace(/\{(\w+)\}/g, (_whole, name: string) => String(values[name] ?? ''));
}
