/**
 * Registering, changing and removing compute resources. The server asks a new one who it is before it is stored; one that does
 * not answer yet is stored all the same, and asked again later.
 */
import { type Selectable, sql } from 'kysely';
import { anyone } from '../access/caller.ts';
import type { EngineDescription } from '../compute/engine.ts';
import { ComputeError, ServiceUnreachable } from '../compute/errors.ts';
import { computeUrlProblem, engineFor } from '../compute/registry.ts';
import type { Queries, Transaction } from '../database/database.ts';
import type { ComputeResource } from '../database/generated.ts';
import { enqueue } from '../database/queue.ts';
import { InvalidFields, invalid, invalidObject, NotFound } from '../hypermedia/errors.ts';
import { type Input, integer, isHttpUrl, type Members, readInput, text, url } from '../hypermedia/input.ts';
import { type ActionCall, type Call, change, creation } from '../hypermedia/routes.ts';
import type { Services } from '../services.ts';
import { lockCatalogue } from './registration.ts';
import { MASK } from './resources.ts';

type Stored = Selectable<ComputeResource>;

/** What can be set; secrets encrypted. */
type Settings = Pick<
  Stored,
  | 'name'
  | 'compute_url'
  | 'compute_auth_url'
  | 'compute_user'
  | 'compute_password_encrypted'
  | 'compute_auth_token_encrypted'
  | 'description'
  | 'max_job_exec_seconds'
>;

const FIELDS = {
  name: text({ max: 100, required: true }),
  compute_url: url({ max: 300, required: true, check: computeUrlProblem }),
  compute_auth_url: url({ max: 350, blank: true }),
  compute_user: text({ min: 4, max: 32, blank: true }),
  compute_password: text({ min: 8, max: 100, blank: true, verbatim: true, writeOnly: true }),
  compute_auth_token: text({ max: 500, blank: true, writeOnly: true }),
  description: text({ max: 600, blank: true }),
  max_job_exec_seconds: integer(),
};

type Fields = Input<typeof FIELDS>;

/** A service on the network is reached with a name and a password; what runs on this machine needs neither. */
const besideService = ({ compute_url: address }: Members): boolean =>
  typeof address !== 'string' || isHttpUrl(address.trim()) || computeUrlProblem(address.trim()) !== null;

const NEW_FIELDS = {
  ...FIELDS,
  compute_user: { ...FIELDS.compute_user, requiredBeside: besideService },
  compute_password: { ...FIELDS.compute_password, requiredBeside: besideService },
};

function defaultAuthUrl(computeUrl: string): string {
  return isHttpUrl(computeUrl) ? `${computeUrl.replace(/\/*$/, '/')}auth-token/` : '';
}

const NOTHING: Settings = {
  name: '',
  compute_url: '',
  compute_auth_url: '',
  compute_user: '',
  compute_password_encrypted: null,
  compute_auth_token_encrypted: null,
  description: '',
  max_job_exec_seconds: -1,
};

/** A secret as it was given; null when the body leaves it as it is. */
function givenSecret(text: string | undefined, present: Settings): string | null {
  return text === undefined || (text === MASK && present !== NOTHING) ? null : text;
}

/** The settings after a body has been applied to the present ones. @throws {InvalidFields} */
function settingsOf({ secrets }: Services, fields: Fields, present: Settings): Settings {
  const { compute_url } = fields;
  const moved = compute_url !== present.compute_url;
  const compute_auth_url = fields.compute_auth_url || (moved ? defaultAuthUrl(compute_url) : present.compute_auth_url);
  // stored secrets are for the service that they were given for: nobody can have them sent elsewhere
  const elsewhere = moved || compute_auth_url !== present.compute_auth_url;
  const secretOf = (text: string | undefined, stored: Buffer | null): Buffer | null => {
    const given = givenSecret(text, present);
    if (given === null) return elsewhere ? null : stored;
    return given === '' ? null : secrets.encrypt(given);
  };
  const settings = {
    name: fields.name,
    compute_url,
    compute_auth_url,
    compute_user: fields.compute_user ?? present.compute_user,
    compute_password_encrypted: secretOf(fields.compute_password, present.compute_password_encrypted),
    compute_auth_token_encrypted: secretOf(fields.compute_auth_token, present.compute_auth_token_encrypted),
    description: fields.description ?? present.description,
    max_job_exec_seconds: fields.max_job_exec_seconds ?? present.max_job_exec_seconds,
  };
  requireCredentials(settings, elsewhere && present !== NOTHING);
  return settings;
}

function requireCredentials(settings: Settings, moved: boolean): void {
  if (!isHttpUrl(settings.compute_url)) return;
  if (settings.compute_user === '') throw invalid('compute_user', 'This field may not be blank.');
  if (settings.compute_password_encrypted !== null) return;
  const reason = moved
    ? 'Give the password again: it is not sent to another address than it was given for.'
    : 'This field may not be blank.';
  throw invalid('compute_password', reason);
}

/** What the service says of itself; null when it does not answer yet. @throws {InvalidFields} when it will not work with us */
async function askService(services: Services, settings: Settings, id: number): Promise<EngineDescription | null> {
  const now = new Date().toISOString();
  const candidate: Stored = {
    ...settings,
    id,
    creation_date: now,
    modification_date: now,
    compute_innetwork: false,
    compute_requires_copy_job: false,
    compute_requires_upload_job: false,
    described_at: null,
  };
  try {
    const engine = engineFor(candidate, services);
    return await engine.describe().finally(() => engine.close());
  } catch (error) {
    if (error instanceof ServiceUnreachable) return null;
    if (error instanceof ComputeError) throw invalidObject(`The compute resource cannot be used: ${error.message}.`);
    throw error;
  }
}

type Described = Pick<Stored, 'described_at'> &
  Partial<Pick<Stored, 'compute_innetwork' | 'compute_requires_copy_job' | 'compute_requires_upload_job'>>;

/** What changes with the service's answer; one that has not answered is known as before. */
function describedColumns(description: EngineDescription | null): Described {
  if (description === null) return { described_at: null };
  return {
    compute_innetwork: description.inNetwork,
    compute_requires_copy_job: description.requiresCopyJob,
    compute_requires_upload_job: description.requiresUploadJob,
    described_at: new Date().toISOString(),
  };
}

const RETRY_SECONDS = 5;

async function askLater(transaction: Transaction, id: number, description: EngineDescription | null): Promise<void> {
  if (description !== null) return;
  await enqueue(transaction, 'describeComputeResource', { computeResourceId: id }, { delaySeconds: RETRY_SECONDS });
}

/** What is wrong with a name. */
async function nameProblems(
  database: Queries,
  name: string | undefined,
  ownId: number,
): Promise<Record<string, string[]>> {
  if (name === undefined) return {};
  const taken = await database
    .selectFrom('compute_resource')
    .select('id')
    .where('name', '=', name)
    .where('id', '!=', ownId)
    .executeTakeFirst();
  return taken ? { name: [`There is already a compute resource named "${name}". Choose another name.`] } : {};
}

/** With the catalogue locked the name stays free until the end of the transaction. @throws {InvalidFields} */
async function requireFreeName(transaction: Transaction, name: string, ownId: number): Promise<void> {
  await lockCatalogue(transaction);
  const problems = await nameProblems(transaction, name, ownId);
  if (Object.keys(problems).length > 0) throw new InvalidFields(problems);
}

/** Checks a new resource and asks its service; gives what stores it. */
async function prepareCreation(
  services: Services,
  fields: Fields,
): Promise<(transaction: Transaction) => Promise<number>> {
  const settings = settingsOf(services, fields, NOTHING);
  const description = await askService(services, settings, 0);
  return async (transaction) => {
    await requireFreeName(transaction, settings.name, 0);
    const { id } = await transaction
      .insertInto('compute_resource')
      .values({ ...settings, ...describedColumns(description) })
      .returning('id')
      .executeTakeFirstOrThrow();
    await askLater(transaction, id, description);
    return id;
  };
}

export const computeResourceCreation = creation({
  input: NEW_FIELDS,
  check: ({ services }, { name }) => nameProblems(services.database, name, 0),
  ask: async ({ services }, fields) => {
    const store = await prepareCreation(services, fields);
    return ({ transaction }: ActionCall) => store(transaction);
  },
});

/**
 * Registers a compute resource, as the command line does.
 * @param members those of a request to the administration API @returns its id @throws {InvalidFields}
 */
export async function addComputeResource(services: Services, members: Members): Promise<number> {
  const fields = readInput(NEW_FIELDS, { members, isForm: false });
  const store = await prepareCreation(services, fields);
  return services.database.transaction().execute(store);
}

async function prepareChange({ services, path }: Call, fields: Fields): Promise<(call: ActionCall) => Promise<void>> {
  const id = path.id ?? 0;
  const present = await services.database
    .selectFrom('compute_resource')
    .selectAll()
    .where('id', '=', id)
    .executeTakeFirst();
  if (!present) throw new NotFound('compute resource');
  const settings = settingsOf(services, fields, present);
  const description = await askService(services, settings, id);
  return async ({ transaction }) => {
    await requireFreeName(transaction, settings.name, id);
    const changed = await transaction
      .updateTable('compute_resource')
      .set({ ...settings, ...describedColumns(description), modification_date: sql<string>`now()` })
      .where('id', '=', id)
      .where('modification_date', '=', present.modification_date)
      .executeTakeFirst();
    if (changed.numUpdatedRows === 0n)
      throw invalidObject('Somebody else has just changed or removed this compute resource. Read it again.');
    await askLater(transaction, id, description);
  };
}

export const computeResourceChange = change({
  rule: anyone,
  input: FIELDS,
  check: ({ services, path }, { name }) => nameProblems(services.database, name, path.id ?? 0),
  ask: prepareChange,
});

/** @throws {InvalidFields} while a plugin has no other compute resource */
export async function removeComputeResource({
  transaction,
  services,
  caller,
  path,
  afterCommit,
}: ActionCall): Promise<void> {
  const id = path.id ?? 0;
  await lockCatalogue(transaction);
  const { rows } = await sql<{ name: string; version: string }>`
    select m.name, p.version from plugin_compute_resource r join plugin p on p.id = r.plugin_id join plugin_meta m on m.id = p.meta_id
    where r.compute_resource_id = ${id} and not exists
      (select from plugin_compute_resource other where other.plugin_id = r.plugin_id and other.compute_resource_id != ${id})
    order by m.name, p.version limit 5`.execute(transaction);
  if (rows.length > 0) {
    const plugins = rows.map(({ name, version }) => `${name} ${version}`).join(', ');
    throw invalidObject(
      `This is the only compute resource of ${plugins}. Give the plugins another one first, or remove them.`,
    );
  }
  await transaction.deleteFrom('compute_resource').where('id', '=', id).execute();
  afterCommit(() => services.log.info({ computeResource: id, by: caller.username }, 'removed a compute resource'));
}
