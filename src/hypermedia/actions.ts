/** Running what changes things: read the body, check it, do the work in one transaction, then what follows from it. */
import type { IncomingFile } from '../storage/storage.ts';
import { BODY_TYPES, type BodyOptions, readBody } from './body.ts';
import { type Exchange, requireFormCsrfProof } from './dispatch.ts';
import type { Body, InputFields } from './input.ts';
import type { ActionCall, Call } from './routes.ts';

export function bodyOptions(call: Call): BodyOptions {
  const { config, storage } = call.services;
  return {
    accepted: BODY_TYPES,
    maxBytes: config.maxBodyBytes,
    maxFileBytes: config.maxUploadBytes ?? undefined,
    storage,
  };
}

/** Reads a body and hands it on; whatever files it brought and nobody took are forgotten afterwards. */
export async function withBody<R>(
  exchange: Exchange,
  fields: InputFields,
  options: BodyOptions,
  work: (body: Body) => Promise<R>,
): Promise<R> {
  const received: IncomingFile[] = [];
  try {
    const body = await readBody(exchange.request, fields, options, received);
    requireFormCsrfProof(exchange, body.members.csrfmiddlewaretoken);
    return await work(body);
  } finally {
    for (const file of received) await options.storage.discard(file);
  }
}

/** Runs in a transaction, and afterwards what was put off until it is committed. */
export async function inTransaction<R>(call: Call, work: (call: ActionCall) => Promise<R>): Promise<R> {
  const later: (() => Promise<void> | void)[] = [];
  const result = await call.services.database
    .transaction()
    .execute((transaction) => work({ ...call, transaction, afterCommit: (one) => later.push(one) }));
  for (const one of later) await one();
  return result;
}
