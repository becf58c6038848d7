"""Find everything that is wrong with a file, as `tidelog check` and `tidelog test` report it."""

from __future__ import annotations

from tidelog.analysis.program_warnings import find_program_warnings
from tidelog.compiler.compiled_program import Target
from tidelog.compiler.passes import check_program
from tidelog.data.schema import parse_schema
from tidelog.errors import Diagnostic, TidelogError
from tidelog.language_server.project import Project, ProjectFile
from tidelog.rule_tests.case_reader import parse_tests
from tidelog.rule_tests.case_warnings import find_test_warnings


def diagnose_file(project: Project, file: ProjectFile) -> list[Diagnostic]:
    """Return the errors and warnings of a file. Their places may be in a file that it uses."""
    try:
        match file.kind:
            case "dmtl" | "tdl":
                return _diagnose_rules(project, file)
            case "test":
                tests = parse_tests(file.text, file.path, project.load_program)
                return list(find_test_warnings(tests))
            case "schema":
                parse_schema(file.text, file.path)
            case "facts":
                pass
    except TidelogError as error:
        return list(error.diagnostics)
    return []


def _diagnose_rules(project: Project, file: ProjectFile) -> list[Diagnostic]:
    program = project.load_program(file.path)
    program.require_times()
    found = list(find_program_warnings(program))
    try:
        check_program(program, Target("batch"))
    except TidelogError as error:
        found += error.diagnostics
    return found
