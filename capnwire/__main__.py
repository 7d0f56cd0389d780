"""`python -m capnwire`: the command line."""

from capnwire.cli import main

if __name__ == "__main__":
    main()
