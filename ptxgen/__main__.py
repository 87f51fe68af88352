"""`python -m ptxgen` is the `ptxgen` command."""

from ptxgen.app.cli import main

if __name__ == "__main__":
    main()
