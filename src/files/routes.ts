/** Routes of the file browser and of user files (`files.md`). */
import { sql } from 'kysely';
import type { CallerSql, Condition } from '../access/caller.ts';
import {
  ownFile,
  readFile,
  readFolder,
  readInFolder,
  readLinkFile,
  writeFile,
  writeFolder,
  writeLinkFile,
} from '../access/files.ts';
import { contains, equalNumber, exactly, type Filter, special as filter, since, until } from '../hypermedia/filters.ts';
import { boolean, file, text } from '../hypermedia/input.ts';
import { change, creation, item, list, type Order, PUBLIC, type Route, SIGNED_IN } from '../hypermedia/routes.ts';
import { downloadRoute } from './download-route.ts';
import { createFolder, requestFolderDeletion, requireMovableLink } from './folders.ts';
import { changeObject, removeFile } from './moves.ts';
import { allWords, beginningOfPath, exactPath, oneOfEachFolder } from './name-filters.ts';
import { PATH_LIMIT_CHARACTERS } from './paths.ts';
import { permissionRoutes } from './permissions.ts';
import { browserFile, FNAME, folder, linkFile, userFile } from './resources.ts';
import { storeUpload } from './uploads.ts';

const pathText = { max: PATH_LIMIT_CHARACTERS };

/** Reading for everybody (objects have rules of their own), making for those who are known. */
const OPEN_READING = { read: 'anyone', write: 'signed in' } as const;

const inFolder = {
  within: { resource: folder, parameter: 'id' },
  access: PUBLIC,
  links: [{ rel: 'folder', to: 'filebrowser/{id}/' }],
} as const;

const folderRoutes: readonly Route[] = [
  list({
    path: 'filebrowser/',
    of: folder,
    access: OPEN_READING,
    where: ({ caller }) => sql`d.path = '' and ${readFolder('d', caller)}`,
    order: sql`d.id`,
    search: {
      where: ({ caller }) => readFolder('d', caller),
      filters: [
        equalNumber('id', sql`d.id`),
        {
          ...filter(
            'path',
            'string',
            (path) => path.replace(/^\/+|\/+$/g, '').replaceAll('\0', ''),
            (path) => sql`d.path = ${path}`,
          ),
          fallback: '',
          unless: 'id',
        },
      ],
    },
    template: ['path'],
    create: creation({
      input: { path: text({ ...pathText, required: true }), public: boolean() },
      run: (call, { path }) => createFolder(call, path),
    }),
  }),
  item({
    path: 'filebrowser/{id}/',
    of: folder,
    access: PUBLIC,
    change: change({
      rule: writeFolder,
      input: { public: boolean(), path: text(pathText) },
      work: (call, input) => changeObject(call, { table: 'folder', id: call.path.id ?? 0 }, input, 'path'),
    }),
    remove: { rule: writeFolder, inBackground: true, run: requestFolderDeletion },
  }),
  list({
    path: 'filebrowser/{id}/children/',
    of: folder,
    ...inFolder,
    where: ({ caller, path }) => sql`d.parent_id = ${path('id')} and ${readFolder('d', caller)}`,
    // that is by path, since they have one parent
    order: sql`d.name desc`,
  }),
  list({
    path: 'filebrowser/{id}/files/',
    of: browserFile,
    ...inFolder,
    where: ({ caller, path }) => sql`x.folder_id = ${path('id')} and ${readInFolder('x', caller, path('id'))}`,
    order: sql`x.name desc`,
  }),
  list({
    path: 'filebrowser/{id}/linkfiles/',
    of: linkFile,
    ...inFolder,
    where: ({ caller, path }) => sql`x.folder_id = ${path('id')} and ${readInFolder('x', caller, path('id'))}`,
    order: sql`x.id`,
  }),
];

const browserFileRoutes: readonly Route[] = [
  item({
    path: 'filebrowser/files/{id}/',
    of: browserFile,
    access: PUBLIC,
    change: change({
      rule: writeFile,
      input: { public: boolean(), new_file_path: text(pathText) },
      work: (call, { public: isPublic, new_file_path: path }) =>
        changeObject(call, { table: 'file', id: call.path.id ?? 0 }, { public: isPublic, path }, 'new_file_path'),
    }),
    remove: { rule: writeFile, work: (call) => removeFile(call, { table: 'file', id: call.path.id ?? 0 }) },
  }),
  downloadRoute({ path: 'filebrowser/files/{id}/*', of: browserFile, rule: readFile }),
  item({
    path: 'filebrowser/linkfiles/{id}/',
    of: linkFile,
    access: PUBLIC,
    change: change({
      rule: writeLinkFile,
      input: { public: boolean(), new_link_file_path: text(pathText) },
      work: async (call, { public: isPublic, new_link_file_path: path }) => {
        if (path !== undefined) await requireMovableLink(call);
        await changeObject(
          call,
          { table: 'link_file', id: call.path.id ?? 0 },
          { public: isPublic, path },
          'new_link_file_path',
        );
      },
    }),
    remove: {
      rule: writeLinkFile,
      work: async (call) => {
        await requireMovableLink(call);
        await removeFile(call, { table: 'link_file', id: call.path.id ?? 0 });
      },
    },
  }),
  downloadRoute({ path: 'filebrowser/linkfiles/{id}/*', of: linkFile, rule: readLinkFile }),
];

/** What a caller's list of user files holds: own files, or for administrators everybody's below `home`. */
export function ownFiles(caller: CallerSql): Condition {
  return ownFile('x', caller);
}

/** By path, descending, folder by folder: an administrator's are most of the table, anybody else's few of it. */
export const USER_FILE_ORDER: Order = ({ caller }) =>
  caller.role === 'administrator' ? sql`d.path desc, x.name desc` : sql`d.path || '' desc, x.name desc`;

const USER_FILE_FILTERS: readonly Filter[] = [
  equalNumber('id', sql`x.id`),
  since('min_creation_date', sql`x.creation_date`),
  until('max_creation_date', sql`x.creation_date`),
  beginningOfPath('fname'),
  exactPath('fname_exact'),
  contains('fname_icontains', FNAME),
  allWords('fname_icontains_multiple', FNAME),
  oneOfEachFolder('fname_nslashes', FNAME),
  exactly('owner_username', sql`u.username`),
];

const userFileRoutes: readonly Route[] = [
  list({
    path: 'userfiles/',
    of: userFile,
    access: SIGNED_IN,
    where: ({ caller }) => ownFiles(caller),
    order: USER_FILE_ORDER,
    search: { filters: USER_FILE_FILTERS },
    template: ['upload_path', 'fname'],
    create: creation({
      input: { upload_path: text({ ...pathText, required: true }), fname: file({ required: true }) },
      bodies: ['multipart/form-data'],
      work: storeUpload,
    }),
  }),
  item({
    path: 'userfiles/{id}/',
    of: userFile,
    access: PUBLIC,
    change: change({
      rule: ownFile,
      input: { upload_path: text(pathText), public: boolean() },
      work: (call, { public: isPublic, upload_path: path }) =>
        changeObject(call, { table: 'file', id: call.path.id ?? 0 }, { public: isPublic, path }, 'upload_path'),
    }),
    remove: { rule: ownFile, work: (call) => removeFile(call, { table: 'file', id: call.path.id ?? 0 }) },
  }),
  downloadRoute({ path: 'userfiles/{id}/*', of: userFile, rule: ownFile }),
];

export const fileRoutes: readonly Route[] = [
  ...folderRoutes,
  ...browserFileRoutes,
  ...permissionRoutes,
  ...userFileRoutes,
];
