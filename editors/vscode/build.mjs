// Bundle the extension with its libraries, and collect the licences of what is in the bundle.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const { metafile } = await build({
  entryPoints: ["src/extension.js"],
  bundle: true,
  platform: "node",
  format: "cjs",
  external: ["vscode"],
  minify: true,
  metafile: true,
  outfile: "out/extension.js",
});

const folders = Object.keys(metafile.inputs).map((path) => path.match(/^.*node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[0]);
const notices = [...new Set(folders.filter(Boolean))].sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
});
mkdirSync("../../build", { recursive: true });
writeFileSync("out/licences.txt", notices.join(`\n${"-".repeat(80)}\n\n`));
