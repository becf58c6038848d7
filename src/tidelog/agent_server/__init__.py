"""The MCP server of `tidelog mcp`: an agent checks rules, runs them over files, tests them and asks why.

Read `commands` first: each tool is a command of the command line, with its paths checked by `allowed_folders`, run in a
process with limits. `server` offers them over the Model Context Protocol, with the official SDK.
"""
