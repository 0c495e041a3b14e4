/** The routes at which tokens and browser sessions begin and end. */
import { bodyOptions, inTransaction, withBody } from '../hypermedia/actions.ts';
import type { Exchange } from '../hypermedia/dispatch.ts';
import { Forbidden, invalidObject } from '../hypermedia/errors.ts';
import { escapeHtml, PAGE_SECURITY_POLICY, pageFrame } from '../hypermedia/html.ts';
import { readInput, text } from '../hypermedia/input.ts';
import type { Content } from '../hypermedia/openapi-types.ts';
import { PUBLIC, SIGNED_IN, type SpecialRoute, special } from '../hypermedia/routes.ts';
import type { PasswordCheck } from './authentication.ts';
import { beginSession, endSession, provesOrigin, setCsrfCookie } from './sessions.ts';
import { currentToken, issueToken, revokeTokens } from './tokens.ts';

const CREDENTIALS = { username: text({ required: true }), password: text({ required: true, verbatim: true }) };
const WRONG = 'Unable to log in with this user name and password.';

const TOKEN_BODIES = ['application/x-www-form-urlencoded', 'multipart/form-data', 'application/json'] as const;

const AUTH_TOKEN: Content = {
  types: TOKEN_BODIES,
  component: 'AuthToken',
  schema: {
    type: 'object',
    properties: {
      username: { type: 'string', writeOnly: true },
      password: { type: 'string', writeOnly: true },
      token: { type: 'string', readOnly: true },
    },
    required: ['password', 'token', 'username'],
  },
};

const TOKEN_METADATA = {
  name: 'Auth Token',
  description: 'Exchanges a user name and password for an access token.',
  renders: ['application/json'],
  parses: TOKEN_BODIES,
  actions: {
    POST: {
      username: { type: 'string', required: true, read_only: false, label: 'Username' },
      password: { type: 'string', required: true, read_only: false, label: 'Password' },
      token: { type: 'string', required: false, read_only: true, label: 'Token' },
    },
  },
};

function tokenRoute(passwords: PasswordCheck): SpecialRoute {
  const issue = (exchange: Exchange): Promise<unknown> => {
    const { call, request } = exchange;
    const { database, secrets, config } = call.services;
    return withBody(exchange, CREDENTIALS, { ...bodyOptions(call), accepted: TOKEN_BODIES }, async (body) => {
      const { username, password } = readInput(CREDENTIALS, body);
      const account = await passwords.check(username, password, request.ip, false);
      if (!account) throw invalidObject(WRONG);
      const known = await currentToken(database, secrets, account.id, account.token_generation);
      const token =
        known ??
        (await inTransaction(call, ({ transaction }) =>
          issueToken(transaction, secrets, account.id, config.tokenLifetimeDays),
        ));
      return { token };
    });
  };
  return special({
    path: 'auth-token/',
    access: PUBLIC,
    representation: 'JSON',
    describe: () => TOKEN_METADATA,
    methods: {
      POST: {
        operation: 'authTokenCreate',
        summary: 'Exchange a user name and password for an access token',
        body: AUTH_TOKEN,
        answer: { ...AUTH_TOKEN, types: ['application/json'] },
        handle: issue,
      },
    },
  });
}

/** Ends every API token of the caller, the one in use too. */
const revokeRoute = special({
  path: 'auth-token/revoke/',
  access: SIGNED_IN,
  representation: 'JSON',
  methods: {
    POST: {
      operation: 'authTokenRevoke',
      summary: "Revoke all of the caller's API tokens; the next log-in gives a new one",
      answer: 'nothing',
      handle: (exchange) => {
        const { call, reply } = exchange;
        const { id } = call.caller;
        return withBody(exchange, {}, bodyOptions(call), async () => {
          if (id !== null) await inTransaction(call, ({ transaction }) => revokeTokens(transaction, id, null));
          return reply.code(204).send();
        });
      },
    },
  },
});

function loginPage(csrf: string, next: string, problem: string | null): string {
  const message = problem === null ? '' : `<p role="alert"><strong>${escapeHtml(problem)}</strong></p>`;
  return pageFrame(
    'Log in',
    `<h1>Log in</h1>${message}<form method="post"><input type="hidden" name="csrfmiddlewaretoken" value="${escapeHtml(csrf)}">
<input type="hidden" name="next" value="${escapeHtml(next)}">
<p><label>User name<br><input name="username" autocomplete="username" autofocus required></label></p>
<p><label>Password<br><input name="password" type="password" autocomplete="current-password" required></label></p>
<p><button>Log in</button></p></form>`,
  );
}

function sendPage({ reply }: Exchange, page: string, status = 200): unknown {
  return reply
    .code(status)
    .headers({ 'content-type': 'text/html; charset=utf-8', 'content-security-policy': PAGE_SECURITY_POLICY })
    .send(page);
}

const OWN_PATH = /^\/(?![/\\])[^\\\p{Cc}]*$/u;

/** Only a path on this server is a place to go on to; as it stands in a header, where letters of other alphabets are encoded. */
function safeNext(next: unknown, otherwise: string): string {
  if (typeof next !== 'string' || !OWN_PATH.test(next)) return otherwise;
  const { pathname, search, hash } = new URL(next, 'http://localhost');
  return OWN_PATH.test(pathname) ? pathname + search + hash : otherwise;
}

/** @param staffOnly the page in front of the administration lets only staff in */
function loginRoute(passwords: PasswordCheck, path: string, home: string, staffOnly: boolean): SpecialRoute {
  const show = async (exchange: Exchange): Promise<unknown> => {
    const { request, reply, call } = exchange;
    const csrf = setCsrfCookie(call.services.secrets, request.cookies.sessionid ?? '', request, reply);
    const next = new URL(request.url, 'http://localhost').searchParams.get('next');
    return sendPage(exchange, loginPage(csrf, safeNext(next, home), null));
  };

  const logIn = (exchange: Exchange): Promise<unknown> => {
    const { request, reply, call } = exchange;
    const { secrets, database } = call.services;
    const options = {
      ...bodyOptions(call),
      accepted: ['application/x-www-form-urlencoded', 'multipart/form-data'] as const,
    };
    return withBody(exchange, {}, options, async ({ members }) => {
      if (!provesOrigin(secrets, request, members.csrfmiddlewaretoken))
        throw new Forbidden('The form has expired or came from elsewhere. Open the log-in page again.');
      const { username, password } = members;
      const next = safeNext(members.next, home);
      const account =
        typeof username === 'string' && typeof password === 'string'
          ? await passwords.check(username.trim(), password, request.ip, false)
          : null;
      if (!account || (staffOnly && !account.is_staff)) {
        const csrf = setCsrfCookie(secrets, request.cookies.sessionid ?? '', request, reply);
        return sendPage(exchange, loginPage(csrf, next, account ? 'This account is not a member of staff.' : WRONG));
      }
      const session = await beginSession(database, account.id, request, reply);
      setCsrfCookie(secrets, session, request, reply);
      return reply.redirect(next, 302);
    });
  };
  return special({
    path,
    fromRoot: true,
    access: PUBLIC,
    representation: 'its own',
    undocumented: true,
    methods: { GET: { summary: 'Log-in form', handle: show }, POST: { summary: 'Begin a session', handle: logIn } },
  });
}

function logoutRoute(path: string, login: string): SpecialRoute {
  const logOut = (exchange: Exchange): Promise<unknown> => {
    const { request, reply, call } = exchange;
    return withBody(exchange, {}, bodyOptions(call), async () => {
      await endSession(call.services.database, request, reply);
      return reply.redirect(login, 302);
    });
  };
  return special({
    path,
    fromRoot: true,
    access: PUBLIC,
    representation: 'its own',
    undocumented: true,
    methods: { POST: { summary: 'End the session', handle: logOut } },
  });
}

/** The administration's own address leads on: staff to its API, everybody else to the log-in page. */
function adminHomeRoute(prefix: string): SpecialRoute {
  return special({
    path: prefix,
    fromRoot: true,
    access: PUBLIC,
    representation: 'its own',
    undocumented: true,
    methods: {
      GET: {
        summary: 'Where the administration begins',
        handle: async ({ call, reply }) =>
          reply.redirect(call.caller.isStaff ? `/${prefix}api/v1/` : `/${prefix}login/?next=/${prefix}`, 302),
      },
    },
  });
}

/** @param adminPrefixes every prefix under which the administration answers */
export function loginRoutes(passwords: PasswordCheck, adminPrefixes: readonly string[]): readonly SpecialRoute[] {
  const admin = adminPrefixes.map((prefix) => prefix.slice(1));
  return [
    tokenRoute(passwords),
    revokeRoute,
    loginRoute(passwords, 'api/v1/auth/login/', '/api/v1/', false),
    logoutRoute('api/v1/auth/logout/', '/api/v1/auth/login/'),
    ...admin.flatMap((prefix) => [
      adminHomeRoute(prefix),
      loginRoute(passwords, `${prefix}login/`, `/${prefix}api/v1/`, true),
      logoutRoute(`${prefix}logout/`, `/${prefix}login/`),
    ]),
  ];
}
