"""``python -m gmpll``, and the command ``gmpll``."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C is answered in a sentence from the first moment on."""
    try:
        from gmpll.apps.cli import main as run

        run()
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sentence, code = f"The command line needs {error.name}: pip install 'gmpll[cli]'.", 2
    except KeyboardInterrupt:  # while the command line was being loaded
        sentence, code = "interrupted.", 130
    else:
        return
    print(f"gmpll: {sentence}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
