// Runs npm with the Node that runs this script.
import { must } from './commands.mjs';

/** The output of npm; throws with the end of it if npm fails. */
export function npm(args, options = {}) {
  const program = process.env.npm_execpath; // set when npm started this script
  if (program?.endsWith('.js')) return must(process.execPath, [program, ...args], options);
  return must('npm', args, { shell: process.platform === 'win32', ...options });
}
