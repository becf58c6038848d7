// Build src/ into one script and one style sheet, and record a hash of the sources.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "..", "src", "tidelog", "page", "static");
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

// tests/unit/test_page.py hashes the same files in the same way.
function sourcesHash() {
  const names = ["build.mjs", "package.json", "package-lock.json", "tsconfig.json"];
  names.push(...readdirSync(join(here, "src")).map((name) => `src/${name}`));
  const lines = names.sort().map((name) => `${sha256(readFileSync(join(here, name)))}  ${name}\n`);
  return sha256(lines.join(""));
}

// The licences of the bundled packages require that they come with the bundle.
function licences(inputs) {
  const packages = new Set(
    inputs.map((path) => path.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1]).filter(Boolean),
  );
  return [...packages].sort().map((name) => {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
}

const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  charset: "ascii",
  format: "iife",
  target: ["chrome109", "firefox115", "safari16"],
  legalComments: "none",
  metafile: true,
  write: false,
  outdir: "out",
});
const built = { sources: sourcesHash() };
for (const file of result.outputFiles) {
  const name = file.path.endsWith(".css") ? "bundle.css" : "bundle.js";
  const notice = name.endsWith("js") ? `/* Contains:\n\n${licences(Object.keys(result.metafile.inputs)).join("\n")}*/\n` : "";
  // Inside an element of a page, nothing may look like its end or like the beginning of a comment.
  const text = (notice + file.text).replaceAll("</", "<\\/").replaceAll("<!--", "<\\!--");
  writeFileSync(join(out, name), text);
  built[name] = sha256(text);
  console.log(`${name}: ${(text.length / 1024).toFixed(0)} KiB`);
}
writeFileSync(join(out, "built.json"), `${JSON.stringify(built, null, 2)}\n`);
