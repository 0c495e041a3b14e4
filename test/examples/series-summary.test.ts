import assert from 'node:assert/strict';
import { copyFile, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { PNG } from 'pngjs';
import { readDicom } from '../../examples/plugins/pl-series-summary/src/dicom.ts';
import { SeriesCollection } from '../../examples/plugins/pl-series-summary/src/dicom-series.ts';
import type { SeriesSummary, Summary } from '../../examples/plugins/pl-series-summary/src/summary.ts';
import { exampleData, fixtures, runPlugin, runProgram, temporaryFolder } from './series-summary-runs.ts';

const descriptorPath = join(exampleData, '../plugins/pl-series-summary/pl-series-summary.json');

test('a wrong command line ends with status 2 and says what would be right', async (context) => {
  const folder = await temporaryFolder(context);
  const cases: [words: string[], complaint: RegExp][] = [
    [[], /two folders are needed/],
    [[folder], /two folders are needed, input and output; 1 given/],
    [[folder, folder, folder], /3 given/],
    [['--slices', '0', folder, folder], /--slices is '0'; it must be a whole number from 1 to 500/],
    [['--slices', 'many', folder, folder], /whole number/],
    [['--axis', 'diagonal', folder, folder], /axial, coronal, sagittal/],
    [['--window', '40', folder, folder], /center,width/],
    [['--window', '40,0', folder, folder], /width of at least 1/],
    [['--window', ',400', folder, folder], /center,width/],
    [['--colour', folder, folder], /--colour/],
  ];
  for (const [words, complaint] of cases) {
    const { exitCode, stderr } = await runProgram(words);
    assert.equal(exitCode, 2, words.join(' '));
    assert.match(stderr, complaint);
  }
});

test('folders that cannot be used end with status 1 and are named', async (context) => {
  const folder = await temporaryFolder(context);
  const missing = join(folder, 'missing');
  const file = join(folder, 'file');
  await writeFile(file, '');
  for (const [words, complaint] of [
    [[missing, folder], /input folder .*missing/],
    [[folder, missing], /output folder .*missing/],
    [[file, folder], /not a folder/],
  ] as const) {
    const { exitCode, stderr } = await runProgram(words);
    assert.equal(exitCode, 1);
    assert.match(stderr, complaint);
  }
});

test('--json, --version and --help describe the plugin', async () => {
  const descriptor = JSON.parse(await readFile(descriptorPath, 'utf8'));
  assert.deepEqual(JSON.parse((await runProgram(['--json'])).stdout), descriptor);
  assert.equal((await runProgram(['--version'])).stdout.trim(), descriptor.version);
  const { stdout } = await runProgram(['--help']);
  for (const parameter of descriptor.parameters) assert.ok(stdout.includes(parameter.flag), parameter.flag);
});

test('damaged, compressed and foreign files are listed and the rest is summarised', async (context) => {
  const { summary } = await runPlugin(context, fixtures);
  const problems = new Map(summary.problems.map(({ file, problem }) => [file, problem]));
  assert.equal(problems.get('MR_truncated.dcm'), 'the pixel data end early: 8130 of 8192 bytes');
  assert.match(problems.get('badVR.dcm') ?? '', /number of frames \(0028,0008\) is '1A'/);
  assert.equal(problems.size, 2);
  assert.deepEqual(summary.ignored, ['DICOMDIR-bigEnd', 'LICENSE.pydicom', 'README.md']);
  const nuclear = bySeries(summary, 'NM');
  assert.equal(nuclear.pixelData, 'not decoded (JPEG 2000)');
  assert.deepEqual(nuclear.matrix, { columns: 256, rows: 1024 });
  assert.deepEqual(nuclear.pictures, []);
  assert.equal(bySeries(summary, 'RTPLAN').pixelData, 'none');
  // The forms of one MR image are one series: two of them can be decoded.
  const magnetic = bySeries(summary, 'MR');
  assert.equal(magnetic.objects, 4);
  assert.equal(magnetic.pixelData, 'partly decoded (RLE; damaged)');
  assert.deepEqual(magnetic.transferSyntaxes.toSorted(), [
    'Explicit VR Big Endian',
    'Explicit VR Little Endian',
    'Implicit VR Little Endian',
    'RLE',
  ]);
});

test('a file cut off anywhere never fails the run', async (context) => {
  const folder = await temporaryFolder(context);
  const whole = await readFile(join(exampleData, 'dicom/mr/MR_small.dcm'));
  const volume = await readFile(join(exampleData, 'nifti/example4d.nii.gz'));
  const lengths = [0, 1, 131, 132, 140, 300, 600, 1400, whole.length - 1];
  for (const length of lengths) {
    await writeFile(join(folder, `image-${length}`), whole.subarray(0, length));
    await writeFile(join(folder, `volume-${length}.nii.gz`), volume.subarray(0, length));
  }
  const { summary } = await runPlugin(context, folder);
  const listed = [...summary.problems.map(({ file }) => file), ...summary.ignored];
  assert.deepEqual(
    new Set(listed),
    new Set(lengths.flatMap((length) => [`image-${length}`, `volume-${length}.nii.gz`])),
  );
  assert.ok(summary.problems.some(({ file }) => file === `image-${whole.length - 1}`));
});

test('an empty folder gives an empty summary', async (context) => {
  const { summary, outputFolder } = await runPlugin(context, await temporaryFolder(context));
  assert.deepEqual({ ...summary, plugin: null }, { plugin: null, series: [], volumes: [], problems: [], ignored: [] });
  assert.deepEqual(await readdir(outputFolder), ['summary.csv', 'summary.json']);
});

test('symbolic links are not followed', async (context) => {
  const folder = await temporaryFolder(context);
  await symlink(exampleData, join(folder, 'elsewhere'));
  const { summary } = await runPlugin(context, folder);
  assert.equal(summary.series.length, 0);
});

test('values agree with those that pydicom and nibabel read', async (context) => {
  const { summary } = await runPlugin(context, exampleData, ['--no-pictures']);
  assert.deepEqual(bySeries(summary, 'CT').values, { minimum: -896, maximum: 1167, mean: -119.0738525390625 });
  assert.deepEqual(bySeries(summary, 'MR', '1').values, { minimum: 127, maximum: 2145, mean: 518.88134765625 });
  const volumes = new Map(summary.volumes.map((volume) => [volume.folder, volume]));
  const anatomical = volumes.get('anatomical');
  assert.deepEqual(anatomical?.matrix, [33, 41, 25]);
  assert.deepEqual(anatomical?.values, { minimum: -610, maximum: 30393, mean: 8401.066725794532 });
  const functional = volumes.get('example4d');
  assert.equal(functional?.volumes, 2);
  assert.deepEqual(functional?.values, { minimum: 0, maximum: 1162, mean: 172.90811496310764 });
});

test('every form of pixels gives the same values', async (context) => {
  const forms: [files: string[], values: SeriesSummary['values'], images: number][] = [
    [['MR_small_bigendian.dcm'], { minimum: 127, maximum: 2145, mean: 518.88134765625 }, 1],
    [['MR_small_implicit.dcm'], { minimum: 127, maximum: 2145, mean: 518.88134765625 }, 1],
    [['rtdose.dcm'], { minimum: 795000, maximum: 1254000, mean: 1013273.3333333334 }, 15],
    [['rtdose_expb.dcm'], { minimum: 795000, maximum: 1254000, mean: 1013273.3333333334 }, 15],
    [['liver_expb_1frame.dcm'], { minimum: 0, maximum: 1, mean: 0.13821792602539062 }, 1],
    [['image_dfl.dcm'], { minimum: 0, maximum: 255, mean: 127.115966796875 }, 1],
    [['SC_rgb_small_odd.dcm'], null, 1],
  ];
  for (const [files, values, images] of forms) {
    const folder = await temporaryFolder(context);
    for (const file of files) await copyFile(join(fixtures, file), join(folder, file));
    const { summary } = await runPlugin(context, folder, ['--no-pictures']);
    const [series] = summary.series;
    assert.deepEqual(series?.values, values, files.join());
    assert.equal(series?.images, images);
    assert.equal(series?.pixelData, 'decoded');
  }
});

test('a file without the part 10 header is recognised', async (context) => {
  const folder = await temporaryFolder(context);
  const file = await readFile(join(fixtures, 'MR_small_implicit.dcm'));
  const headerBytes = 132 + 12 + file.readUInt32LE(140);
  await writeFile(join(folder, 'bare'), file.subarray(headerBytes));
  const { summary } = await runPlugin(context, folder);
  assert.equal(summary.series[0]?.values?.maximum, 2145);
});

test('colours and MONOCHROME1 arrive in the pictures', async (context) => {
  const folder = await temporaryFolder(context);
  await copyFile(join(fixtures, 'SC_rgb_small_odd_big_endian.dcm'), join(folder, 'colour'));
  await copyFile(join(fixtures, 'CR_monochrome1.dcm'), join(folder, 'radiograph'));
  const { summary, outputFolder } = await runPlugin(context, folder, ['--window', '1840,100']);
  const colour = await readPicture(outputFolder, bySeries(summary, 'OT'));
  assert.deepEqual([...colour.data.subarray(0, 3)], [166, 141, 52]);
  // The values are 1564 to 2117, the window ends at 1890: of MONOCHROME1 the highest are black, the lowest white.
  const radiograph = await readPicture(outputFolder, bySeries(summary, 'CR'));
  const file = await readFile(join(fixtures, 'CR_monochrome1.dcm'));
  const stored = new Uint16Array(file.buffer.slice(file.byteOffset + file.length - 512, file.byteOffset + file.length));
  const lowest = stored.indexOf(Math.min(...stored));
  const [column, row] = [lowest % 16, Math.floor(lowest / 16)];
  const pixel = ((row * 32 + 16) * radiograph.width + column * 32 + 16) * 4;
  assert.ok((radiograph.data[pixel] ?? 0) > 200, `the lowest value is shown as ${radiograph.data[pixel]}`);
});

test('pictures have square pixels, and as many as asked for', async (context) => {
  const { summary, outputFolder } = await runPlugin(context, exampleData, [
    '-n',
    '3',
    '-a',
    'sagittal',
    '-w',
    '-100,400',
  ]);
  const volume = summary.volumes.find(({ folder }) => folder === 'example4d');
  assert.equal(volume?.pictures.length, 4);
  assert.deepEqual(
    volume?.pictures.slice(1),
    [22, 65, 107].map((number) => `pictures/example4d/slice-0${String(number).padStart(3, '0')}.png`),
  );
  // 96 columns of 2 mm and 24 rows of 2.2 mm: 96 x 26 square pixels, enlarged five times.
  const picture = PNG.sync.read(await readFile(join(outputFolder, volume?.pictures[1] ?? '')));
  assert.deepEqual([picture.width, picture.height], [480, 130]);
  const files = await readdir(outputFolder, { recursive: true });
  const written = files.filter((file) => file.endsWith('.png')).sort();
  const listed = [...summary.series, ...summary.volumes].flatMap(({ pictures }) => pictures);
  assert.deepEqual(listed.toSorted(), written);
});

test('a series is described by its first image', async (context) => {
  const { summary } = await runPlugin(context, exampleData, ['--no-pictures']);
  const angiography = bySeries(summary, 'MR', '700');
  assert.equal(angiography.images, 7);
  assert.deepEqual(angiography.window, { center: 149, width: 359 });
  assert.deepEqual(angiography.spacing, { column: 0.390625, row: 0.390625, slice: 1.2 });
});

test('images that are turned against each other are ordered by their numbers', async () => {
  const folder = join(exampleData, 'dicom/mr-angiography');
  const series = new SeriesCollection();
  for (const file of await readdir(folder)) series.add(file, readDicom(await readFile(join(folder, file))));
  const order = series.inOrder().flatMap((each) => each.framesInOrder().map(({ file }) => file));
  assert.deepEqual(order, ['4558', '4528', '4588', '4467', '4618', '4678', '4648']);
});

test('parallel images are ordered by their places', async () => {
  const file = await readFile(join(exampleData, 'dicom/mr/MR_small.dcm'));
  const series = new SeriesCollection();
  for (const height of ['9.6406', '1.6406', '6.6406']) {
    const moved = Buffer.from(file.toString('latin1').replace('\\6.6406', `\\${height}`), 'latin1');
    series.add(height, readDicom(moved));
  }
  const order = series.inOrder().flatMap((each) => each.framesInOrder().map((address) => address.file));
  assert.deepEqual(order, ['1.6406', '6.6406', '9.6406']);
});

test('patients are left out unless asked for', async (context) => {
  for (const identifiers of [false, true]) {
    const run = await runPlugin(context, exampleData, ['--no-pictures', ...(identifiers ? ['--identifiers'] : [])]);
    const csv = await readFile(join(run.outputFolder, 'summary.csv'), 'utf8');
    for (const output of [JSON.stringify(run.summary), csv]) assert.equal(output.includes('Doe^Peter'), identifiers);
    assert.ok(!run.stdout.includes('Doe^Peter'));
  }
});

test('texts cannot become formulas in the table', async (context) => {
  const folder = await temporaryFolder(context);
  const volume = await readFile(join(exampleData, 'nifti/anatomical.nii'));
  volume.write('=cmd("a"),1\0', 148, 'latin1');
  await mkdir(join(folder, 'deep'));
  await writeFile(join(folder, 'deep', 'formula.bin'), gzipSync(volume));
  const { outputFolder } = await runPlugin(context, folder, ['--no-pictures']);
  const csv = await readFile(join(outputFolder, 'summary.csv'), 'utf8');
  assert.match(csv, /,"'=cmd\(""a""\),1[^"]*",/);
});

function bySeries(summary: Summary, modality: string, number?: string): SeriesSummary {
  const found = summary.series.find(
    (series) => series.modality === modality && (number === undefined || series.seriesNumber === number),
  );
  assert.ok(found, `a series of ${modality}`);
  return found;
}

async function readPicture(outputFolder: string, series: SeriesSummary): Promise<PNG> {
  const path = series.pictures.find((each) => each.includes('slice-'));
  assert.ok(path, 'a picture of a slice');
  return PNG.sync.read(await readFile(join(outputFolder, path)));
}
