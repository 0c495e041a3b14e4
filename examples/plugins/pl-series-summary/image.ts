/**
 * Builds the plugin's container image without a registry: from the Node.js that runs this file, the shared libraries that it
 * needs, and the plugin with its packages, imported through the Docker Engine API (Docker and Podman alike).
 *
 *     node image.ts          builds it with the engine that DOCKER_HOST names, unless it is there already
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type Docker from 'dockerode';
import { type Pack, pack } from 'tar-stream';
import { connect } from '../../../src/compute/container-client.ts';
import { descriptor } from './src/descriptor.ts';

/** The image cannot be built here; the message says why. */
export class ImageNotBuilt extends Error {
  override readonly name = 'ImageNotBuilt';
}

interface ImageFile {
  readonly source: string;
  /** Absolute path in the image. */
  readonly target: string;
  readonly executable: boolean;
  readonly sizeBytes: number;
}

const CONTENT_LABEL = 'org.hypercube.content';
const pluginFolder = dirname(fileURLToPath(import.meta.url));

/** @returns whether it was built, or was there with the same content. @throws {ImageNotBuilt} */
export async function ensureImage(docker: Docker): Promise<'built' | 'present'> {
  const files = [...(await runtimeFiles()), ...(await pluginFiles())];
  const content = await contentDigest(files);
  if ((await contentLabel(docker)) === content) return 'present';
  await importImage(docker, files, content);
  if ((await contentLabel(docker)) !== content) {
    throw new ImageNotBuilt(`the container engine did not keep the image ${descriptor.dock_image}`);
  }
  return 'built';
}

/** Node.js itself and its shared libraries, the loader included. */
async function runtimeFiles(): Promise<ImageFile[]> {
  if (process.platform !== 'linux') {
    throw new ImageNotBuilt(
      'the image holds the Node.js of this machine, which must run Linux; build it from the Dockerfile',
    );
  }
  const { stdout } = await promisify(execFile)('ldd', [process.execPath]).catch((error: Error) => {
    throw new ImageNotBuilt(`the shared libraries of ${process.execPath} cannot be listed: ${error.message}`);
  });
  const libraries = [...stdout.matchAll(/(?:=> |^\s*)(\/\S+) \(0x/gm)].flatMap(([, path]) => path ?? []);
  return Promise.all([
    imageFile(process.execPath, descriptor.execshell),
    ...[...new Set(libraries)].map((path) => imageFile(path, path)),
  ]);
}

async function pluginFiles(): Promise<ImageFile[]> {
  const own = ['package.json', 'pl-series-summary.json', descriptor.selfexec].map((name) =>
    imageFile(join(pluginFolder, name), join(descriptor.selfpath, name)),
  );
  const packages = await packageFolders(join(pluginFolder, 'package.json'));
  return [
    ...(await Promise.all(own)),
    ...(await folderFiles(join(pluginFolder, 'src'), join(descriptor.selfpath, 'src'))),
    ...(
      await Promise.all(
        [...packages].map(([name, folder]) => folderFiles(folder, join(descriptor.selfpath, 'node_modules', name))),
      )
    ).flat(),
  ];
}

/** Folders by name of all packages that a package depends on, at any depth. They have no conflicting versions. */
async function packageFolders(packagePath: string, found = new Map<string, string>()): Promise<Map<string, string>> {
  const { dependencies = {} }: { dependencies?: Record<string, string> } = JSON.parse(
    await readFile(packagePath, 'utf8'),
  );
  for (const name of Object.keys(dependencies)) {
    if (found.has(name)) continue;
    const path = findPackageJSON(name, pathToFileURL(packagePath));
    if (path === undefined) throw new ImageNotBuilt(`the package ${name} is not installed`);
    found.set(name, dirname(path));
    await packageFolders(path, found);
  }
  return found;
}

async function folderFiles(folder: string, target: string): Promise<ImageFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const needed = paths.filter((path) => !/\.(map|md|d\.[cm]?ts)$/.test(path)).sort();
  return Promise.all(needed.map((path) => imageFile(path, join(target, path.slice(folder.length)))));
}

async function imageFile(source: string, target: string): Promise<ImageFile> {
  const { mode, size } = await stat(source);
  return { source, target, executable: (mode & 0o111) !== 0, sizeBytes: size };
}

/** Files of the system are told by version and size, those of the plugin by their content. */
async function contentDigest(files: readonly ImageFile[]): Promise<string> {
  const hash = createHash('sha256').update(`${process.version} ${process.arch}\n`);
  for (const { source, target, sizeBytes } of files) {
    hash.update(`${target} ${sizeBytes}\n`);
    if (target.startsWith(descriptor.selfpath)) hash.update(await readFile(source));
  }
  return hash.digest('hex');
}

async function contentLabel(docker: Docker): Promise<string | null> {
  try {
    const { Config } = await docker.getImage(descriptor.dock_image).inspect();
    return Config.Labels?.[CONTENT_LABEL] ?? null;
  } catch (error) {
    if (error instanceof Error && 'statusCode' in error && error.statusCode === 404) return null;
    throw new ImageNotBuilt(`the container engine does not answer: ${error instanceof Error ? error.message : error}`);
  }
}

async function importImage(docker: Docker, files: readonly ImageFile[], content: string): Promise<void> {
  const colon = descriptor.dock_image.lastIndexOf(':');
  const archive = pack();
  try {
    const [answer] = await Promise.all([
      docker.importImage(Readable.from(archive), { changes: `LABEL ${CONTENT_LABEL}=${content}` }),
      writeArchive(archive, files),
    ]);
    const progress = await text(answer);
    const [id] = /\b[0-9a-f]{64}\b/.exec(progress) ?? [];
    if (id === undefined) throw new Error(progress.trim());
    // Podman does not tag what it imports as Docker does, so that is a step of its own.
    await docker.getImage(id).tag({
      repo: descriptor.dock_image.slice(0, colon),
      tag: descriptor.dock_image.slice(colon + 1),
    });
  } catch (error) {
    throw new ImageNotBuilt(`the image cannot be imported: ${error instanceof Error ? error.message : error}`);
  }
}

async function writeArchive(archive: Pack, files: readonly ImageFile[]): Promise<void> {
  try {
    for (const folder of foldersOf(files)) archive.entry({ name: folder.slice(1), type: 'directory', mode: 0o755 });
    archive.entry({ name: 'tmp', type: 'directory', mode: 0o1777 });
    for (const { source, target, executable, sizeBytes } of files) {
      const entry = archive.entry({ name: target.slice(1), size: sizeBytes, mode: executable ? 0o755 : 0o644 });
      await pipeline(createReadStream(source), entry);
    }
    archive.finalize();
  } catch (error) {
    archive.destroy(error instanceof Error ? error : new Error(String(error)));
    throw error;
  }
}

/** Every folder above the files, outer ones first. */
function foldersOf(files: readonly ImageFile[]): string[] {
  const folders = new Set<string>();
  for (const { target } of files) {
    for (let folder = dirname(target); folder !== '/'; folder = dirname(folder)) folders.add(folder);
  }
  return [...folders].sort();
}

if (import.meta.main) {
  const outcome = await ensureImage(connect('docker:'));
  console.log(`${descriptor.dock_image}: ${outcome}`);
}
