/** The route behind `file_resource`: whatever stands behind the id, the id decides. */
import { Readable } from 'node:stream';
import { sql } from 'kysely';
import type { Rule } from '../access/caller.ts';
import type { Exchange } from '../hypermedia/dispatch.ts';
import { Forbidden, NotAuthenticated, NotFound } from '../hypermedia/errors.ts';
import type { Resource } from '../hypermedia/resource.ts';
import { PUBLIC, type SpecialRoute, special } from '../hypermedia/routes.ts';
import { type Download, downloadHeaders, sendFile } from './download.ts';
import { FNAME } from './resources.ts';

interface DownloadRoute {
  /** Path with `{id}` and `*`. */
  readonly path: string;
  readonly of: Resource;
  readonly rule: Rule;
}

interface Found extends Download {
  readonly isReadable: boolean;
  /** Of a link file: its content. */
  readonly target: string | null;
}

async function find({ call }: Exchange, { of, rule }: DownloadRoute): Promise<Found> {
  const { services, caller, path } = call;
  const isLink = of.component === 'FileBrowserLinkFile';
  const content = isLink
    ? sql`octet_length(x.target_path) as "sizeBytes", null::bytea as sha256, x.target_path as target, ${FNAME} as "storagePath"`
    : sql`x.size_bytes as "sizeBytes", x.sha256, null::text as target, coalesce(x.storage_key, ${FNAME}) as "storagePath"`;
  const { rows } = await sql<Found>`
    select x.id, ${FNAME} as path, ${content}, (${rule('x', caller)}) as "isReadable"
    from ${of.from} where x.id = ${path.id ?? 0}::bigint ${of.where ? sql`and ${of.where}` : sql``}`.execute(
    services.database,
  );
  const [found] = rows;
  if (!found) throw new NotFound(of.name);
  if (!found.isReadable) throw caller.role === 'anonymous' ? new NotAuthenticated() : new Forbidden();
  return found;
}

async function download(exchange: Exchange, route: DownloadRoute): Promise<unknown> {
  const { reply, call, context, request } = exchange;
  const found = await find(exchange, route);
  if (request.method === 'GET') await context.authenticator.useUp(call.caller);
  if (found.target === null) return sendFile(reply, call.services.storage, found);
  return reply
    .headers({ ...downloadHeaders(found), 'content-length': found.sizeBytes })
    .send(Readable.from([Buffer.from(found.target)]));
}

export function downloadRoute(route: DownloadRoute): SpecialRoute {
  return special({
    path: route.path,
    access: PUBLIC,
    representation: 'its own',
    downloadToken: true,
    methods: {
      GET: { summary: `Download the content of a ${route.of.name}`, handle: (exchange) => download(exchange, route) },
    },
  });
}
