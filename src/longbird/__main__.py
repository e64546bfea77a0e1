"""`python -m longbird`, and so `torchrun -m longbird`: the command, where it is not on the path."""

from longbird.cli.entry import main

if __name__ == "__main__":
    main()
