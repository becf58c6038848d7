"""`python -m tidelog`: the command line, for environments whose `tidelog` is not on the path."""

from tidelog.cli.main import main

if __name__ == "__main__":
    main()
