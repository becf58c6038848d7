// Starts `tidelog lsp` for rule files, rule tests and schemas, and shows what its commands print.

"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

function createClient(output) {
  const command = vscode.workspace.getConfiguration("tidelog").get("command", "tidelog");
  const documentSelector = [
    { scheme: "file", language: "dmtl" },
    { scheme: "file", language: "tdl" },
    { scheme: "file", language: "tidelog-test" },
    { scheme: "file", pattern: "**/tidelog.toml" },
  ];
  const middleware = {
    // The server returns the text of a run or an explanation; an editor shows it in a panel.
    async executeCommand(name, args, next) {
      const result = await next(name, args);
      if (result && result.text) {
        output.clear();
        output.append(result.text + "\n");
        output.show(true);
      }
      return result;
    },
  };
  return new LanguageClient(
    "tidelog",
    "tidelog",
    { command, args: ["lsp"] },
    // The log of the client is a channel of its own: it has levels, which the panel of results lacks.
    { documentSelector, middleware, outputChannelName: "tidelog language server" },
  );
}

async function start(output) {
  client = createClient(output);
  try {
    await client.start();
  } catch (problem) {
    const help = "Install it with: pip install 'tidelog[lsp]', or set tidelog.command to its path.";
    vscode.window.showErrorMessage(`tidelog: the language server does not start. ${help} (${problem.message})`);
  }
}

async function activate(context) {
  const output = vscode.window.createOutputChannel("tidelog");
  context.subscriptions.push(output);
  context.subscriptions.push(
    vscode.commands.registerCommand("tidelog.restartServer", async () => {
      if (client) {
        await client.stop();
      }
      await start(output);
    }),
  );
  await start(output);
}

function deactivate() {
  return client ? client.stop() : undefined;
}

module.exports = { activate, deactivate };
