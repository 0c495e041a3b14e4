/**
 * The first tables. Text that is sorted or searched has the collation `pg_c_utf8`: byte order, and case folding for all of
 * Unicode, on every server whatever its locale.
 */
import { type Kysely, sql } from 'kysely';

const ACCOUNTS = `
create table account (
  id integer generated always as identity primary key,
  username text collate pg_c_utf8 not null unique,
  email text collate pg_c_utf8 not null,
  password_hash text not null,
  is_active boolean not null default true,
  is_staff boolean not null default false,
  is_administrator boolean not null default false,
  token_generation integer not null default 1,
  creation_date timestamptz not null default now(),
  last_login timestamptz
);
create unique index account_username_folded on account (lower(username));
create unique index account_email_folded on account (lower(email));

create table account_group (
  id integer generated always as identity primary key,
  name text collate pg_c_utf8 not null unique
);

create table membership (
  id bigint generated always as identity primary key,
  group_id integer not null references account_group on delete cascade,
  account_id integer not null references account on delete cascade,
  unique (account_id, group_id)
);
create index membership_group on membership (group_id);

-- Only hashes are kept: a token's text is made again from the server's key (kind api) or known to one job (kind job).
create table api_token (
  id bigint generated always as identity primary key,
  account_id integer not null references account on delete cascade,
  token_hash bytea not null unique,
  kind text not null check (kind in ('api', 'job')),
  generation integer,
  feed_id bigint,
  plugin_instance_id bigint,
  creation_date timestamptz not null default now(),
  expires_at timestamptz
);
create index api_token_account on api_token (account_id);
create index api_token_instance on api_token (plugin_instance_id) where plugin_instance_id is not null;

create table browser_session (
  id_hash bytea primary key,
  account_id integer not null references account on delete cascade,
  creation_date timestamptz not null default now(),
  expires_at timestamptz not null
);
create index browser_session_account on browser_session (account_id);

create table download_token (
  id bigint generated always as identity primary key,
  account_id integer not null references account on delete cascade,
  token_hash bytea not null unique,
  creation_date timestamptz not null default now(),
  expires_at timestamptz not null
);
create index download_token_account on download_token (account_id, creation_date);
create index download_token_expiry on download_token (expires_at);

create table chris_instance (
  id integer primary key default 1 check (id = 1),
  creation_date timestamptz not null default now(),
  name text not null default 'ChRIS instance',
  uuid uuid not null default gen_random_uuid(),
  job_id_prefix text not null default 'chris-jid-',
  description text not null default ''
);
`;

const FILES = `
-- An access list. A folder, file or link file without one has that of the nearest folder above it that has.
create table acl (
  id bigint generated always as identity primary key,
  public boolean not null default false
);

create table acl_entry (
  id bigint generated always as identity primary key,
  acl_id bigint not null references acl on delete cascade,
  account_id integer references account on delete cascade,
  group_id integer references account_group on delete cascade,
  level text not null check (level in ('r', 'w')),
  check (num_nonnulls(account_id, group_id) = 1),
  unique (acl_id, account_id),
  unique (acl_id, group_id)
);
create index acl_entry_account on acl_entry (account_id) where account_id is not null;
create index acl_entry_group on acl_entry (group_id) where group_id is not null;

create table folder (
  id bigint generated always as identity primary key,
  parent_id bigint references folder,
  name text collate pg_c_utf8 not null,
  path text collate pg_c_utf8 not null unique,
  owner_id integer not null references account,
  acl_id bigint unique references acl,
  creation_date timestamptz not null default now(),
  deletion_status text not null default 'inactive' check (deletion_status in ('inactive', 'pending', 'failed')),
  deletion_requested_at timestamptz,
  deletion_error text not null default '',
  unique (parent_id, name),
  check ((parent_id is null) = (path = ''))
);
create index folder_owner on folder (owner_id);
create index folder_path_words on folder using gin (path gin_trgm_ops);

create table file (
  id bigint generated always as identity primary key,
  folder_id bigint not null references folder,
  name text collate pg_c_utf8 not null,
  owner_id integer not null references account,
  acl_id bigint unique references acl,
  size_bytes bigint not null,
  sha256 bytea,
  crc32 bigint,
  storage_key text,
  creation_date timestamptz not null default now(),
  unique (folder_id, name)
);
create index file_owner on file (owner_id);
create index file_name_words on file using gin (name gin_trgm_ops);

create table link_file (
  id bigint generated always as identity primary key,
  folder_id bigint not null references folder,
  name text collate pg_c_utf8 not null,
  owner_id integer not null references account,
  acl_id bigint unique references acl,
  target_path text collate pg_c_utf8 not null,
  creation_date timestamptz not null default now(),
  unique (folder_id, name)
);
create index link_file_target on link_file (target_path);

-- Changes of storage that a crash could leave half-done; see src/storage/intents.ts.
create table storage_intent (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('put', 'move', 'remove')),
  from_path text,
  to_path text,
  process_id bigint not null,
  creation_date timestamptz not null default now()
);

-- Server processes that are, or were, alive: each holds the advisory lock of its id; see src/database/processes.ts.
create table server_process (
  id bigint generated always as identity primary key,
  worker_ids text[] not null default '{}',
  started_at timestamptz not null default now()
);
`;

const PLUGINS = `
create table compute_resource (
  id bigint generated always as identity primary key,
  creation_date timestamptz not null default now(),
  modification_date timestamptz not null default now(),
  name text collate pg_c_utf8 not null unique,
  compute_url text not null,
  compute_auth_url text not null default '',
  compute_innetwork boolean not null default true,
  compute_requires_copy_job boolean not null default false,
  compute_requires_upload_job boolean not null default false,
  compute_user text not null default '',
  compute_password_encrypted bytea,
  compute_auth_token_encrypted bytea,
  description text collate pg_c_utf8 not null default '',
  max_job_exec_seconds integer not null default -1,
  -- when the service last said what it is; null: it has not answered yet
  described_at timestamptz
);

create table plugin_meta (
  id bigint generated always as identity primary key,
  creation_date timestamptz not null default now(),
  modification_date timestamptz not null default now(),
  name text collate pg_c_utf8 not null unique,
  title text collate pg_c_utf8 not null default '',
  stars integer not null default 0,
  public_repo text not null default '',
  license text not null default '',
  type text not null check (type in ('fs', 'ds', 'ts')),
  icon text not null default '',
  category text collate pg_c_utf8 not null default '',
  authors text collate pg_c_utf8 not null default '',
  documentation text not null default ''
);
create index plugin_meta_order on plugin_meta (type, creation_date desc);

create table plugin (
  id bigint generated always as identity primary key,
  meta_id bigint not null references plugin_meta,
  owner_id integer references account on delete set null,
  creation_date timestamptz not null default now(),
  version text collate pg_c_utf8 not null,
  dock_image text not null,
  description text collate pg_c_utf8 not null default '',
  execshell text not null,
  selfpath text not null,
  selfexec text not null,
  min_number_of_workers integer not null default 1,
  max_number_of_workers integer not null default 2147483647,
  min_cpu_limit integer not null default 1000,
  max_cpu_limit integer not null default 2147483647,
  min_memory_limit integer not null default 200,
  max_memory_limit integer not null default 2147483647,
  min_gpu_limit integer not null default 0,
  max_gpu_limit integer not null default 0,
  unique (meta_id, version),
  unique (meta_id, dock_image)
);
create index plugin_owner on plugin (owner_id);

create table plugin_parameter (
  id bigint generated always as identity primary key,
  plugin_id bigint not null references plugin on delete cascade,
  position integer not null,
  name text collate pg_c_utf8 not null,
  type text not null check (type in ('string', 'integer', 'float', 'boolean', 'path', 'unextpath')),
  optional boolean not null default false,
  default_value jsonb,
  flag text not null,
  short_flag text not null default '',
  action text not null default 'store',
  help text not null default '',
  ui_exposed boolean not null default true,
  unique (plugin_id, position),
  unique (plugin_id, name)
);

create table plugin_compute_resource (
  plugin_id bigint not null references plugin on delete cascade,
  compute_resource_id bigint not null references compute_resource on delete cascade,
  primary key (plugin_id, compute_resource_id)
);
create index plugin_compute_resource_reverse on plugin_compute_resource (compute_resource_id);
`;

const ANALYSES = `
create table feed (
  id bigint generated always as identity primary key,
  name text collate pg_c_utf8 not null,
  public boolean not null default false,
  owner_id integer not null references account,
  folder_id bigint references folder on delete set null,
  creation_date timestamptz not null default now(),
  modification_date timestamptz not null default now(),
  deletion_status text not null default 'inactive' check (deletion_status in ('inactive', 'pending', 'failed')),
  deletion_requested_at timestamptz,
  deletion_error text not null default ''
);
create index feed_owner on feed (owner_id, creation_date desc);
create index feed_public on feed (creation_date desc) where public;
create index feed_date on feed (creation_date desc);
create unique index feed_folder on feed (folder_id);

create table note (
  id bigint generated always as identity primary key,
  feed_id bigint not null unique references feed on delete cascade,
  title text not null default '',
  content text not null default ''
);

create table feed_user_permission (
  id bigint generated always as identity primary key,
  feed_id bigint not null references feed on delete cascade,
  account_id integer not null references account on delete cascade,
  unique (account_id, feed_id)
);
create index feed_user_permission_feed on feed_user_permission (feed_id);

create table feed_group_permission (
  id bigint generated always as identity primary key,
  feed_id bigint not null references feed on delete cascade,
  group_id integer not null references account_group on delete cascade,
  unique (group_id, feed_id)
);
create index feed_group_permission_feed on feed_group_permission (feed_id);

create table plugin_instance (
  id bigint generated always as identity primary key,
  title text collate pg_c_utf8 not null default '',
  plugin_id bigint not null references plugin,
  feed_id bigint not null references feed,
  previous_id bigint references plugin_instance,
  owner_id integer not null references account,
  compute_resource_id bigint references compute_resource on delete set null,
  status text not null check (status in ('created', 'waiting', 'copying', 'scheduled', 'started', 'uploading',
    'registeringFiles', 'finishedSuccessfully', 'finishedWithError', 'cancelled')),
  active boolean not null generated always as (status in ('created', 'waiting', 'copying', 'scheduled', 'started',
    'uploading', 'registeringFiles')) stored,
  start_date timestamptz not null default now(),
  end_date timestamptz not null default now(),
  -- when the present phase (copy, plugin, upload) was submitted: what max_job_exec_seconds counts from
  phase_started_at timestamptz,
  -- submissions of the present phase that have failed
  submission_failures integer not null default 0,
  -- times that the present phase was submitted again because its job had vanished or was undefined
  resubmissions integer not null default 0,
  -- whether it has one of the slots of its compute resource; see src/jobs/admission.ts
  admitted boolean not null default false,
  -- the process that waits for the end of its job; see src/jobs/watchers.ts
  watched_by bigint references server_process on delete set null,
  output_folder_id bigint references folder on delete set null,
  pushed boolean not null default false,
  pulled boolean not null default false,
  -- last answer of the engine {jid, image, cmd, status, message, timestamp, logs} as the wire shows it: base64 of zlib-compressed JSON
  raw text not null default '',
  -- of that answer: its status, and the last 1800 characters of its logs
  job_status text not null default '',
  job_logs text not null default '',
  cpu_limit integer not null,
  memory_limit integer not null,
  number_of_workers integer not null,
  gpu_limit integer not null,
  size_bytes bigint not null default 0,
  error_code text not null default '',
  deletion_status text not null default 'inactive' check (deletion_status in ('inactive', 'pending', 'failed')),
  deletion_requested_at timestamptz,
  deletion_error text not null default ''
);
create index plugin_instance_feed on plugin_instance (feed_id, status);
create index plugin_instance_previous on plugin_instance (previous_id);
create index plugin_instance_plugin on plugin_instance (plugin_id, owner_id, start_date desc);
create index plugin_instance_date on plugin_instance (start_date desc);
create index plugin_instance_owner on plugin_instance (owner_id);
create index plugin_instance_resource on plugin_instance (compute_resource_id);
create index plugin_instance_output_folder on plugin_instance (output_folder_id);
create index plugin_instance_active on plugin_instance (id) where active;
create index plugin_instance_slots on plugin_instance (compute_resource_id, status) where active;
create index plugin_instance_watched on plugin_instance (watched_by) where watched_by is not null;

-- All instances that one waits for: its previous one, and for ts plugins the others that it joins.
create table plugin_instance_parent (
  plugin_instance_id bigint not null references plugin_instance on delete cascade,
  parent_id bigint not null references plugin_instance on delete cascade,
  position integer not null,
  primary key (plugin_instance_id, parent_id)
);
create index plugin_instance_parent_reverse on plugin_instance_parent (parent_id);

create table plugin_instance_parameter (
  id bigint generated always as identity primary key,
  plugin_instance_id bigint not null references plugin_instance on delete cascade,
  plugin_parameter_id bigint not null references plugin_parameter on delete cascade,
  value jsonb not null,
  unique (plugin_instance_id, plugin_parameter_id)
);
create index plugin_instance_parameter_parameter on plugin_instance_parameter (plugin_parameter_id);

create table plugin_instance_split (
  id bigint generated always as identity primary key,
  plugin_instance_id bigint not null references plugin_instance on delete cascade,
  creation_date timestamptz not null default now(),
  filter text not null default '',
  created_plugin_instance_ids bigint[] not null
);
create index plugin_instance_split_instance on plugin_instance_split (plugin_instance_id, creation_date desc);

-- Remote data and containers of ended jobs, kept apart from the instance so that deleting it forgets nothing.
create table compute_cleanup (
  id bigint generated always as identity primary key,
  compute_resource_id bigint references compute_resource on delete set null,
  job_id text not null,
  plugin_instance_id bigint not null unique,
  attempts integer not null default 0,
  last_error text not null default '',
  creation_date timestamptz not null default now()
);
create index compute_cleanup_resource on compute_cleanup (compute_resource_id);
`;

/** The nearest access list at or above a folder: what holds for everything in it that has none of its own. */
const FUNCTIONS = `
create function folder_acl(start_id bigint) returns bigint language sql stable parallel safe as $$
  with recursive up(id, parent_id, acl_id, depth) as (
    select id, parent_id, acl_id, 0 from folder where id = start_id
    union all
    select f.id, f.parent_id, f.acl_id, up.depth + 1 from folder f join up on f.id = up.parent_id where up.acl_id is null
  )
  select acl_id from up where acl_id is not null order by depth limit 1
$$;
`;

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create extension if not exists pg_trgm`.execute(db);
  for (const part of [ACCOUNTS, FILES, PLUGINS, ANALYSES, FUNCTIONS]) await sql.raw(part).execute(db);
}
