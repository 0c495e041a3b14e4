/** Writes `docs/configuration.md` from the declaration of the settings: `npm run docs`. */
import { writeFileSync } from 'node:fs';
import { SETTINGS, variableName } from './config.ts';

export const CONFIGURATION_DOCUMENT = new URL('../docs/configuration.md', import.meta.url);

export function configurationDocument(): string {
  const sections = Object.entries(SETTINGS).map(([key, setting]) => {
    const name = variableName(key);
    const also = [
      ...(setting.secret ? [`Secret: never shown or logged; \`${name}_FILE\` can name a file that holds it.`] : []),
      ...(setting.alias === null ? [] : [`\`${setting.alias}\` means the same.`]),
    ];
    return [
      `## \`${name}\`\n`,
      [setting.meaning, ...also].join(' '),
      '',
      `* Holds: ${setting.expected}`,
      `* Default: ${setting.fallbackText}`,
      `* Example: \`${setting.example}\``,
      '',
    ].join('\n');
  });
  return `# Configuration

All settings are environment variables. They are checked when the program starts: every one that cannot be used is named,
with what it holds and what it should hold, and so is a \`HYPERCUBE_\` variable that does not exist. An empty variable
counts as absent.

This file is made from \`src/config.ts\` by \`npm run docs\`.

${sections.join('\n')}`;
}

if (import.meta.main) writeFileSync(CONFIGURATION_DOCUMENT, configurationDocument());
