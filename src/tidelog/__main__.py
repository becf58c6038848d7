"""`python -m tidelog`: the command line, for environments whose `tidelog` is not on the path."""

import sys

from tidelog.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
