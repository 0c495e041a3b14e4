/** Turns the bytes of DICOM text values into text, by Specific Character Set (0008,0005); see DICOM PS3.3 C.12.1.1.2. */
import type { DataSet } from 'dicom-parser';

const encodings: Readonly<Record<string, string>> = {
  'ISO_IR 100': 'iso-8859-1',
  'ISO_IR 101': 'iso-8859-2',
  'ISO_IR 109': 'iso-8859-3',
  'ISO_IR 110': 'iso-8859-4',
  'ISO_IR 144': 'iso-8859-5',
  'ISO_IR 127': 'iso-8859-6',
  'ISO_IR 126': 'iso-8859-7',
  'ISO_IR 138': 'iso-8859-8',
  'ISO_IR 148': 'iso-8859-9',
  'ISO_IR 166': 'windows-874',
  'ISO_IR 13': 'shift_jis',
  'ISO_IR 192': 'utf-8',
  GB18030: 'gb18030',
  GBK: 'gbk',
  'ISO 2022 IR 13': 'shift_jis',
  'ISO 2022 IR 87': 'iso-2022-jp',
  'ISO 2022 IR 159': 'iso-2022-jp',
  'ISO 2022 IR 149': 'euc-kr',
  'ISO 2022 IR 58': 'gb18030',
};

/** The value of an element without padding; empty when it is absent. Of several character sets the last one decides. */
export function textOf(dataSet: DataSet, tag: string): string {
  const element = dataSet.elements[tag];
  if (!element || element.length === 0) return '';
  const declared = dataSet.string('x00080005')?.split('\\').at(-1)?.trim() ?? '';
  const encoding = encodings[declared] ?? 'iso-8859-1';
  const end = Math.min(dataSet.byteArray.length, element.dataOffset + element.length);
  return new TextDecoder(encoding)
    .decode(dataSet.byteArray.subarray(element.dataOffset, end))
    .replaceAll('\0', '')
    .trim();
}
