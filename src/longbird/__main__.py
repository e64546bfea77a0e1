"""`python -m longbird`, and so `torchrun -m longbird`."""

from longbird.cli.entry import main

if __name__ == "__main__":
    main()
